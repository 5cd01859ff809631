// Mixed precision: which operators torch.autocast("halyard") casts, by PyTorch's own lists.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace
{

using namespace at; // the lists name types without their namespace

#define HALYARD_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define HALYARD_FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m)
{
    m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m)
{
    AT_FORALL_LOWER_PRECISION_FP(HALYARD_LOWER)
    AT_FORALL_FP32(HALYARD_FULL)
#define HALYARD_FULL_SUM(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
    AT_FORALL_FP32_SET_OPT_DTYPE(HALYARD_FULL_SUM)
#define HALYARD_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_PROMOTE(HALYARD_PROMOTE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

} // namespace
