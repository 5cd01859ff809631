/* The module of a matrix product and the order of its tiles, see gemm/tile/module.h. */
#include "gemm/tile/module.h"

#include "gemm/tile/sums.h"
#include "lower/lower.h"

#include <stddef.h>

hal_status cuda_gemm_module_write(const cuda_gemm_key *key, const cuda_gemm_writers *writers,
                                  kit_text *text)
{
    cuda_lowering l = {
        .kernel = key->epilogue, .features = cuda_features(90), .body = {.host = text->host}};
    void *scratch = NULL;
    HAL_TRY(key->epilogue ? cuda_lowering_init(&l, &scratch) : HAL_OK);
    l.used[cuda_gemm_sum_class(key)] = writers->sums;
    writers->body(&l, key);
    hal_status status = l.status;
    if (status == HAL_OK) {
        writers->header(&l, key, text);
        kit_text_append(text, l.body.data, l.body.length);
        if (text->failed || l.body.failed) {
            status = text->host->fail(text->host, HAL_ERROR_OUT_OF_MEMORY,
                                      "cuda: no host memory for the PTX of a matrix product");
        }
    }
    kit_text_release(&l.body);
    text->host->release(text->host, scratch);
    return status;
}

void cuda_gemm_module_order(kit_text *t)
{
    kit_text_add(t, "mul.lo.u32 %%x0, %%raster, %%tiles_n;\n"
                    "div.u32 %%x2, %%x1, %%x0;\n"
                    "mul.lo.u32 %%x3, %%x2, %%x0;\n"
                    "sub.u32 %%x1, %%x1, %%x3;\n"
                    "mul.lo.u32 %%x2, %%x2, %%raster;\n"
                    "sub.u32 %%x3, %%tiles_m, %%x2;\n"
                    "min.u32 %%x3, %%x3, %%raster;\n"
                    "div.u32 %%x0, %%x1, %%x3;\n"
                    "mul.lo.u32 %%x3, %%x0, %%x3;\n"
                    "sub.u32 %%x1, %%x1, %%x3;\n"
                    "add.u32 %%x1, %%x1, %%x2;\n");
}
