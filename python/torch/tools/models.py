"""Runs models of Hugging Face transformers and torchvision, small and with random weights, on halyard and on
PyTorch's processor.

models.py [--device halyard:0] [NAME...]

Of each model: the difference of the outputs and the largest one of the gradients of a parameter, each as the
norm over that of the processor's; whether it generates the same words; and what fell back to the processor. Both packages have to
be there (pip install transformers torchvision). The exit status is 1 where a model fails or differs: outputs
by more than 1e-4, gradients by more than 1e-2. A maximum of nearly equal elements may have its gradient at
another of them.
"""
import argparse
import copy
import sys
import warnings

import torch
import torchvision
import transformers

import torch_halyard  # noqa: F401

OUTPUTS, GRADIENTS = 1e-4, 1e-2
WORDS = {"vocab_size": 120, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT = {**WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 80}
GROUPED = {**TEXT, "num_key_value_heads": 2}
GEMMA = {**GROUPED, "head_dim": 8}
OLD = {**WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
BOTH = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_model": 32}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "image_size": 32, "patch_size": 8}
PYRAMID = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}

# The name of the configuration, the kind of head, the configuration, and what the model reads.
TRANSFORMERS = [
    ("GPT2", "LMHeadModel", OLD, "text"),
    *((name, "ForCausalLM", GROUPED, "text") for name in
      ("Llama", "Mistral", "Qwen2", "Qwen3", "Phi3", "Olmo", "StableLm", "Cohere", "Granite")),
    ("GPTNeoX", "ForCausalLM", TEXT, "text"),
    ("Gemma", "ForCausalLM", GEMMA, "text"),
    ("Gemma2", "ForCausalLM", GEMMA, "text"),
    ("Mixtral", "ForCausalLM", {**GROUPED, "num_local_experts": 4}, "text"),
    ("OPT", "ForCausalLM", {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32}, "text"),
    ("Bloom", "ForCausalLM", {**WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "text"),
    ("GPTJ", "ForCausalLM", {**OLD, "rotary_dim": 4}, "text"),
    ("Mamba", "ForCausalLM", {**WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}, "text"),
    *((name, "ForMaskedLM", TEXT, "text") for name in
      ("Bert", "Roberta", "Electra", "Deberta", "DebertaV2", "Albert", "MPNet", "FNet", "BigBird")),
    ("DistilBert", "ForMaskedLM", {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}, "text"),
    ("Longformer", "ForMaskedLM", {**TEXT, "attention_window": 8}, "text"),
    ("XLNet", "LMHeadModel", {"vocab_size": 120, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}, "text"),
    ("T5", "ForConditionalGeneration", {"vocab_size": 120, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
                                        "num_heads": 4, "decoder_start_token_id": 0}, "text"),
    ("Bart", "ForConditionalGeneration", {**WORDS, **BOTH, "max_position_embeddings": 64}, "text"),
    ("Whisper", "ForConditionalGeneration", {**WORDS, **BOTH, "num_mel_bins": 16, "decoder_start_token_id": 1,
                                             "max_source_positions": 50, "max_target_positions": 40}, "spectrum"),
    ("Wav2Vec2", "ForCTC", {**TEXT, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3),
                            "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
                            "num_conv_pos_embedding_groups": 2}, "sound"),
    *((name, "ForImageClassification", IMAGE, "image") for name in ("ViT", "Dinov2", "Beit")),
    ("Swin", "ForImageClassification", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1],
                                        "num_heads": [2, 4], "window_size": 4}, "image"),
    ("ConvNext", "ForImageClassification", PYRAMID, "large image"),
    ("Segformer", "ForSemanticSegmentation", {**PYRAMID, "num_attention_heads": [1, 2, 2, 4],
                                              "decoder_hidden_size": 16}, "classes of pixels"),
]
VISION = ["resnet18", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "squeezenet1_0",
          "densenet121", "mnasnet0_5", "regnet_x_400mf", "vgg11", "convnext_tiny", "swin_v2_t"]


def inputs_of(kind):
    generator = torch.Generator().manual_seed(3)
    words = torch.randint(3, 100, (2, 16), generator=generator)

    def random(*shape):
        return torch.randn(shape, generator=generator)
    if kind == "text":
        return {"input_ids": words, "labels": words}
    if kind == "spectrum":
        return {"input_features": random(2, 16, 100), "labels": words}
    if kind == "sound":
        return {"input_values": random(2, 800), "labels": words[:, :6] % 30 + 1}
    size, classes = (32 if kind == "image" else 64), torch.tensor([0, 1])
    if kind == "classes of pixels":
        classes = (words[:, :1, None] + torch.arange(size * size).view(1, size, size)) % 2
    return {"pixel_values": random(2, 3, size, size), "labels": classes}


def models():
    """A name, a function that makes the model, and what it reads."""
    for name, head, configuration, kind in TRANSFORMERS:
        yield name, lambda n=name, h=head, c=configuration: getattr(transformers, n + h)(
            getattr(transformers, n + "Config")(**c)), kind
    for name in VISION:
        yield name, lambda n=name: getattr(torchvision.models, n)(num_classes=10), "torchvision"


def run(model, kind, device):
    """The outputs, the gradients by name, and the words that the model generates or None."""
    model = copy.deepcopy(model).to(device)
    if kind == "torchvision":
        images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(3))
        out = model(images.to(device))
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 2], device=device))
    else:
        inputs = {name: tensor.to(device) for name, tensor in inputs_of(kind).items()}
        result = model(**inputs)
        out, loss = result.logits, result.loss
    loss.backward()
    gradients = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    words = None
    if kind == "text" and model.can_generate() and not isinstance(model, transformers.XLNetLMHeadModel):
        words = model.generate(inputs["input_ids"], max_new_tokens=8, do_sample=False).cpu()
    return out.detach().cpu(), gradients, words


def difference(ours, theirs):
    return (torch.linalg.vector_norm(ours - theirs) /
            torch.linalg.vector_norm(theirs).clamp(min=1e-6)).item()


def compared(make, kind, device):
    """Whether the model is right, and a line about it."""
    torch.manual_seed(0)
    model = make().eval()
    theirs = run(model, kind, "cpu")
    torch.halyard.fallbacks(reset=True)
    ours = run(model, kind, device)
    fallbacks = torch.halyard.fallbacks(reset=True)
    out, same = difference(ours[0], theirs[0]), theirs[2] is None or ours[2].equal(theirs[2])
    slopes = {name: difference(ours[1][name], theirs[1][name]) for name in theirs[1]}
    worst = max(slopes, key=slopes.get)
    right = out <= OUTPUTS and slopes[worst] <= GRADIENTS and same
    return right, (f"outputs {out:.1e}, gradients {slopes[worst]:.1e} of {worst}"
                   f"{'' if same else ', other words'}, fallbacks: {fallbacks or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    wrong = 0
    for name, make, kind in models():
        if arguments.names and name not in arguments.names:
            continue
        try:
            right, line = compared(make, kind, arguments.device)
        except Exception as error:  # the other models are run all the same
            right, line = False, f"{type(error).__name__}: {str(error).splitlines()[0]}"
        wrong += not right
        print(f"{'right' if right else 'WRONG'} {name}: {line}", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
