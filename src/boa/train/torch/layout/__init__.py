"""How a model is laid out over the GPUs of a job, chosen by memory and by what was measured.

| module | |
| --- | --- |
| `layouts` | the layouts there are, and their names; those that were tried are `model.layouts` |
| `needs` | how much memory of a GPU a layout takes |
| `choosing` | which one is next, and why |
| `journal` | trials beside the checkpoints, and from the class |
| `watching` | measures the layout that runs |
| `tensor_plans` | how a model says that its layers can be split |
| `applying` | a model in its layout |
"""
