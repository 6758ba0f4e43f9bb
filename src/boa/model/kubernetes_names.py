"""Names that engine and cloud share in a cluster of Kubernetes."""

DOMAIN = "boa-constrictor.dev"
OWNER = f"{DOMAIN}/owner"
"""The label of all that is a service's."""
GPU = f"{DOMAIN}/gpu"
"""The label of nodes that says their type, unless the settings name another."""
GPUS = "nvidia.com/gpu"
"""The resource that pods ask for and device plugins tell of."""
