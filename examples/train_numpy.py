"""A small network, trained with NumPy on as many processes as BOA gives it.

Every worker computes the gradient of its share of each batch, and the shares are added up over
sockets. So a step is the same at every width (to rounding), and a training that was stopped on one
GPU and went on with two ends with the loss of one that was never interrupted.

    boa submit examples/train_numpy.yaml
    python examples/train_numpy.py            # works by itself, too
"""

import os
import socket
import sys
import time

import numpy as np
from numpy.typing import NDArray

from boa import train

Array = NDArray[np.float64]
SAMPLES, BATCH = 50_000, 1_000
STEPS = SAMPLES // BATCH  # in an epoch
INPUTS, HIDDEN, CLASSES = 64, 128, 10
LEARNING_RATE, MOMENTUM = 0.2, 0.9


class Sum:
    """Adds up arrays over all workers: they send theirs to rank 0, and it sends back the sum."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.links: list[socket.socket] = []
        if world_size == 1:
            return
        where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank > 0:
            self.links = [connect(where)]
            return
        with socket.create_server(where) as server:
            server.settimeout(60)
            self.links = [server.accept()[0] for _ in range(world_size - 1)]

    def __call__(self, values: Array) -> Array:
        if self.rank > 0:
            self.links[0].sendall(values.tobytes())
            return receive(self.links[0], len(values))
        for link in self.links:
            values = values + receive(link, len(values))
        for link in self.links:
            link.sendall(values.tobytes())
        return values


def connect(where: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(where)
        except ConnectionRefusedError:  # rank 0 does not listen yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def receive(link: socket.socket, count: int) -> Array:
    data = b""
    while len(data) < 8 * count:
        piece = link.recv(8 * count - len(data))
        if not piece:
            raise ConnectionError("another worker is gone")
        data += piece
    return np.frombuffer(data)


def make_data() -> tuple[Array, NDArray[np.int64]]:
    """Points, and which of ten classes a random network (the teacher) puts them in."""
    random = np.random.default_rng(1)
    points = random.normal(size=(SAMPLES, INPUTS))
    teacher = np.tanh(points @ random.normal(size=(INPUTS, 20))) @ random.normal(size=(20, CLASSES))
    return points, teacher.argmax(axis=1)


def layers(weights: Array) -> tuple[Array, Array]:
    """The two matrices, as views of one vector."""
    first = weights[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
    return first, weights[INPUTS * HIDDEN :].reshape(HIDDEN, CLASSES)


def loss_and_gradient(
    weights: Array, points: Array, classes: NDArray[np.int64]
) -> tuple[float, Array]:
    """Summed over the points."""
    first, second = layers(weights)
    hidden = np.tanh(points @ first)
    scores = hidden @ second
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(points))
    loss = -np.log(chances[rows, classes]).sum()
    chances[rows, classes] -= 1
    back = (chances @ second.T) * (1 - hidden**2)
    return float(loss), np.concatenate([(points.T @ back).ravel(), (hidden.T @ chances).ravel()])


def save(weights: Array, velocity: Array) -> None:
    with train.new_checkpoint() as folder:
        np.savez(folder / "model.npz", weights=weights, velocity=velocity)


def main() -> None:
    job = train.context()
    points, classes = make_data()
    weights = np.random.default_rng(0).normal(size=HIDDEN * (INPUTS + CLASSES)) / np.sqrt(INPUTS)
    velocity = np.zeros_like(weights)
    done = train.resume().step
    if checkpoint := train.latest_checkpoint():
        with np.load(checkpoint / "model.npz") as saved:
            weights, velocity = saved["weights"], saved["velocity"]
        print(f"resumed at step {done} with {job.world_size} workers", flush=True)
    add_up = Sum(job.rank, job.world_size)
    for epoch in train.epochs():
        order = np.random.default_rng([2, epoch]).permutation(SAMPLES)
        for step in range(done - epoch * STEPS, STEPS):
            batch = order[step * BATCH : (step + 1) * BATCH][job.rank :: job.world_size]
            loss, gradient = loss_and_gradient(weights, points[batch], classes[batch])
            # Whether to stop is added up as well: all workers stop after the same step, or none.
            total = add_up(np.concatenate([gradient, [loss, train.stop_requested()]]))
            velocity = MOMENTUM * velocity - LEARNING_RATE * total[:-2] / BATCH
            weights = weights + velocity
            done += 1
            train.report(samples=BATCH, step=done, loss=total[-2] / BATCH)
            stop, over = bool(total[-1]), step == STEPS - 1
            if job.rank == 0 and (stop or over):
                save(weights, velocity)
                print(f"step {done}: loss {total[-2] / BATCH:.12f}", flush=True)
            if stop:
                sys.exit(0)


if __name__ == "__main__":
    main()
