"""Trains with Accelerate; run by test_torch_adapters.py."""

import torch
from accelerate import Accelerator
from torch.nn.functional import mse_loss

from adapted import ACCUMULATED, BATCH, Diary, Points, network
from boa import train
from boa.train.torch.accelerate import ElasticRun


def main() -> None:
    diary = Diary()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED)
    run = ElasticRun(accelerator, batch_size=BATCH, save_every_s=diary.save_every_s)
    plain = network(diary.dropout)
    sgd = torch.optim.SGD(plain.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.97)
    batches = run.loader(Points())
    prepared = accelerator.prepare(plain, sgd, schedule, batches)
    model, optimizer, scheduler, batches = prepared
    run.resume(model, optimizer, scheduler)
    steps = train.resume().step
    for epoch in run.epochs():
        for indices, x, y in batches:
            diary.batch(epoch, steps, indices, run.weight)
            with accelerator.accumulate(model):
                loss = mse_loss(model(x).squeeze(1), y)
                accelerator.backward(run.weighted(loss))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            steps += run.step()
        diary.note(ended=epoch)
    diary.end(plain, scheduler.get_last_lr()[0])


if __name__ == "__main__":
    main()
