#!/usr/bin/env python3
"""Times of all_reduce algorithms for many ranks, from the latency and bandwidth of a message.

model.py [--local LATENCY_US GBS] [--remote LATENCY_US GBS] [--per-host N] [--add GBS]
         [--ranks N ...] [--bytes N ...]        prints the table of docs/communicators.md

A schedule is a list of rounds. In a round a rank sends a number of messages of one length within
its host and to other hosts, one after the other, and adds what it received. A message within a host
costs the rank its latency and its bytes; one to another host costs the rank the latency, and its
bytes occupy the link that all ranks of the host share. Contention in the network and noise are not
in the model."""
import argparse
import math
from collections import namedtuple

PIECE = 2 << 20
# times: how often the round comes; messages may be a fraction: the mean over the ranks of a host.
Round = namedtuple("Round", "times near near_bytes far far_bytes added")


def direct(ranks, size, per_host):
    """hal: every rank gets its part from all others, adds, and sends the sum to all; or, if there is
    little, all of it."""
    if ranks * size <= 256 << 10:
        return [Round(1, per_host - 1, size, ranks - per_host, size, ranks * size)]
    part = size / ranks
    messages = (per_host - 1, part, ranks - per_host, part)
    return [Round(1, *messages, size), Round(1, *messages, 0)]


def ring(ranks, size, per_host):
    """Through all ranks, host by host: of the ranks of a host one sends to the next host."""
    part, far = size / ranks, 1 / per_host if ranks > per_host else 0
    return [Round(ranks - 1, 1, part, far, part, part), Round(ranks - 1, 1, part, far, part, 0)]


def tree(ranks, size, per_host):
    """To the root of a binary tree and back, in pieces that follow each other. One rank of a host
    has the partners on other hosts."""
    pieces = max(1, math.ceil(size / PIECE))
    piece, depth = size / pieces, math.ceil(math.log2(ranks))
    far = 2 / per_host if ranks > per_host else 0
    return [Round(depth + pieces - 1, 2, piece, far, piece, 2 * piece),
            Round(depth + pieces - 1, 2, piece, far, piece, 0)]


def halving(ranks, size, per_host):
    """Recursive halving, then doubling: partners at distance 1, 2, 4, ..."""
    found, part = [], size
    for level in range(round(math.log2(ranks))):
        part /= 2
        where = (1, part, 0, 0) if 2 ** level < per_host else (0, 0, 1, part)
        found += [Round(1, *where, part), Round(1, *where, 0)]
    return found


def hierarchical(ranks, size, per_host):
    """Direct within the host, halving and doubling of each part between hosts, then direct."""
    part = size / per_host
    found = [Round(1, per_host - 1, part, 0, 0, size), Round(1, per_host - 1, part, 0, 0, 0)]
    return found + halving(ranks // per_host, part, 1)


ALGORITHMS = (direct, ring, tree, halving, hierarchical)


def microseconds(rounds, options):
    total = 0.0
    for r in rounds:
        rank = r.near * (options.local[0] + r.near_bytes / options.local[1] * 1e-3)
        rank += math.ceil(r.far) * options.remote[0]
        link = r.far * options.per_host * r.far_bytes / options.remote[1] * 1e-3
        total += r.times * (rank + link + r.added / options.add * 1e-3)
    return total


def least(ranks, size, hosts, options):
    """Below this no algorithm comes: what a host or rank has to send and receive, one way at a
    time, and two messages one after the other."""
    share, (latency, gbs) = (hosts, options.remote) if hosts > 1 else (ranks, options.local)
    return 2 * latency + 2 * size * (share - 1) / share / gbs * 1e-3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local", nargs=2, type=float, default=[2.0, 5.0])
    parser.add_argument("--remote", nargs=2, type=float, default=[10.0, 12.5])
    parser.add_argument("--per-host", type=int, default=8)
    parser.add_argument("--add", type=float, default=10.0)
    parser.add_argument("--ranks", nargs="*", type=int, default=[2 ** p for p in range(3, 17)])
    parser.add_argument("--bytes", nargs="*", type=int, default=[4096, 1 << 20, 256 << 20])
    options = parser.parse_args()
    names = [algorithm.__name__ for algorithm in ALGORITHMS]
    print(f"| ranks | bytes | {' | '.join(names)} | fastest | efficiency |")
    print("|---|---|" + "---|" * (len(names) + 2))
    for ranks in options.ranks:
        per_host = min(options.per_host, ranks)
        for size in options.bytes:
            times = [microseconds(algorithm(ranks, size, per_host), options)
                     for algorithm in ALGORITHMS]
            best = min(times)
            bound = least(ranks, size, ranks // per_host, options)
            print(f"| {ranks:,} | {size:,} | {' | '.join(f'{time:,.0f}' for time in times)} | "
                  f"{names[times.index(best)]} | {bound / best:.2f} |")


if __name__ == "__main__":
    main()
