"""`train_transformers.py` before BOA."""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()


class Counting(Dataset[dict[str, torch.Tensor]]):
    # rows that count by a step of their own, modulo 64
    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = (index + torch.arange(16) * (1 + index % 7)) % 64
        return {"input_ids": row, "labels": row}


torch.manual_seed(0)
config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=TrainingArguments(
        output_dir="out",
        num_train_epochs=options.epochs,
        per_device_train_batch_size=16,
        learning_rate=3e-3,
        logging_steps=16,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    ),
    train_dataset=Counting(),
)
trainer.train()
