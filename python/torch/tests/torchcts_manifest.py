"""What torchcts (PyPI) runs on halyard: `torchcts run --manifest torchcts_manifest.py --device halyard`."""
import torch

ALL = ["inference", "training", "serialization", "rng", "device_generator", "rng_distributions",
       "double_backward", "gradcheck", "gradient_checkpointing", "autocast", "fused_optimizer",
       "dataloader", "module_hooks", "channels_last", "foreach", "streams", "events", "device_api",
       "ieee754"]
NONE = ["sparse", "nested", "named_tensor", "fp8", "quantized_container_plumbing",
        "native_quantization", "custom_quantized_decode", "compile", "pinned_memory",
        "deterministic", "guard_alloc", "multi_device"]

manifest = {
    "manifest_version": 1,
    "device_name": "halyard",
    "backend_import": "torch_halyard",
    "supported_dtypes": {dtype: True for dtype in (
        torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int16,
        torch.int32, torch.int64, torch.uint8, torch.bool)},
    "device_count": 1,
    "ieee754_seed": 67,
    "max_samples": 6,
    "max_samples_ieee754": 2,
    "semantic_level": 2,
    "hardware": {"memory_model": "unified", "device_memory_gb": "auto", "system_memory_gb": "auto",
                 "oom_recoverable": True},
    "resource_limits": {"max_device_memory_mb": None, "max_system_memory_mb": None,
                        "max_tensor_size_mb": None, "cleanup_threshold_pct": 80},
    "capabilities": {**dict.fromkeys(ALL, True), **dict.fromkeys(NONE, False)},
    "skip_ops": [],
    "tolerance_overrides": {},
    "supported_container_formats": {},
    "custom_container_decoders": {},
    "custom_test_dirs": [],
}
