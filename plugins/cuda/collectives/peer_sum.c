/* Sums by writes to other devices' memory, see collectives/peer_sum.h.
 *
 * A unit is 8 bytes of data. It travels as two pairs of a word and the number of the sum, in one
 * store of 16 bytes, whose halves of 8 bytes arrive whole. So a receiver that finds the number has
 * the data, and no fence or barrier is needed (the protocol LL of NCCL). An inbox has two slots for
 * each rank, which sums use in turn: a rank that sends for sum n has received for sum n - 1 from
 * all others, who have then ended sum n - 2. */
#include "collectives/peer_sum.h"

#include "describe.h"
#include "kernel.h"
#include "lower/lower.h"
#include "pinned.h"
#include "stream.h"

#include <kit/hash.h>
#include <kit/text.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 8,                         /* bytes of data */
    SLOT_BYTES = 2 * CUDA_PEER_BYTES, /* with the numbers */
    GROUP_ITEMS = 256,                /* work-items of a group */
    LEAST_CAPABILITY = 80,            /* for conversions of bf16 */
    POLLS = 1024,                     /* of an inbox between looks at the abort */
    TYPES = 4
};

const uint32_t cuda_peer_types = HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) |
                                 HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_F64);

/* The parameters of a kernel. */
typedef struct peer_arguments {
    cuda_address inboxes[CUDA_PEER_RANKS]; /* slots of this sum for this rank in those of all */
    cuda_address own;                      /* the first slot of this sum in the own inbox */
    cuda_address send, recv, aborted;
    uint32_t count, number; /* elements; of the sum */
    uint32_t is_mean, rank;
} peer_arguments;

typedef struct peer_rank {
    hal_plugin_device *device;
    cuda_address inbox;
    hal_plugin_kernel kernels[TYPES]; /* by peer_type.index; without a module until needed */
} peer_rank;

struct cuda_peer_sum {
    uint32_t ranks;
    uint32_t number; /* of the last sum */
    uint32_t *aborted;
    cuda_address aborted_address;
    peer_rank of[CUDA_PEER_RANKS];
};

/* How a type is loaded, added and stored. */
typedef struct peer_type {
    uint32_t type, index;
    uint32_t size;      /* of an element */
    const char *suffix; /* of loads and stores */
    const char *value;  /* type of the sum */
} peer_type;

static const peer_type types[TYPES] = {{HAL_TYPE_F16, 0, 2, "u16", "f32"},
                                       {HAL_TYPE_BF16, 1, 2, "u16", "f32"},
                                       {HAL_TYPE_F32, 2, 4, "u32", "f32"},
                                       {HAL_TYPE_F64, 3, 8, "u64", "f64"}};

static const peer_type *type_find(uint32_t type)
{
    const peer_type *found = types;
    while (found->type != type) {
        found++;
    }
    return found;
}

/* ---- The kernel ---- */

/* Element `e` of the unit in words %w0 and %w1 becomes the value %v. */
static void element_unpack(kit_text *text, const peer_type *is, uint32_t e)
{
    if (is->type == HAL_TYPE_F64) {
        kit_text_add(text, "mov.b64 %%v, {%%w0, %%w1};\n");
    } else if (is->type == HAL_TYPE_F32) {
        kit_text_add(text, "mov.b32 %%v, %%w%u;\n", e);
    } else if (is->type == HAL_TYPE_F16) {
        kit_text_add(text, "mov.b32 {%%h0, %%h1}, %%w%u;\ncvt.f32.f16 %%v, %%h%u;\n", e / 2, e % 2);
    } else if (e % 2 == 0) {
        kit_text_add(text, "shl.b32 %%t, %%w%u, 16;\nmov.b32 %%v, %%t;\n", e / 2);
    } else {
        kit_text_add(text, "and.b32 %%t, %%w%u, 0xffff0000;\nmov.b32 %%v, %%t;\n", e / 2);
    }
}

/* Loads the own unit into %o0 and %o1, with zeros after the last element. %n: elements from the
 * unit on. Elements are loaded one by one, since a range begins at any of them. */
static void unit_load(kit_text *text, const peer_type *is)
{
    const uint32_t elements = UNIT / is->size;
    for (uint32_t e = 0; e < elements; e++) {
        const char *to = is->size == 2 ? "h" : "e";
        kit_text_add(text, "mov.b%u %%%s%u, 0;\nsetp.gt.u32 %%p, %%n, %u;\n", 8 * is->size, to, e,
                     e);
        kit_text_add(text, "@%%p ld.global.%s %%%s%u, [%%from + %u];\n", is->suffix, to, e,
                     e * is->size);
    }
    kit_text_add(text, "%s",
                 is->size == 2   ? "mov.b32 %o0, {%h0, %h1};\nmov.b32 %o1, {%h2, %h3};\n"
                 : is->size == 4 ? "mov.b32 %o0, %e0;\nmov.b32 %o1, %e1;\n"
                                 : "mov.b64 {%o0, %o1}, %e0;\n");
}

/* Stores the sums %s0, ... of the elements that exist. */
static void unit_store(kit_text *text, const peer_type *is)
{
    for (uint32_t e = 0; e < UNIT / is->size; e++) {
        kit_text_add(text, "setp.gt.u32 %%p, %%n, %u;\n", e);
        if (is->size == 2) {
            kit_text_add(text,
                         "cvt.rn.%s.f32 %%h0, %%s%u;\n@%%p st.global.u16 [%%to + %u], %%h0;\n",
                         is->type == HAL_TYPE_F16 ? "f16" : "bf16", e, 2 * e);
        } else {
            kit_text_add(text, "@%%p st.global.%s [%%to + %u], %%s%u;\n", is->value, e * is->size,
                         e);
        }
    }
}

/* Waits for the unit of rank `q` in %w0 and %w1. */
static void unit_receive(kit_text *text, uint32_t q)
{
    kit_text_add(text,
                 "add.u64 %%a, %%own, %u;\nmov.u32 %%polls, 0;\n"
                 "POLL%u:\nld.volatile.global.v4.u32 {%%w0, %%f0, %%w1, %%f1}, [%%a];\n"
                 "setp.eq.u32 %%p, %%f0, %%number;\nsetp.eq.and.u32 %%p, %%f1, %%number, %%p;\n"
                 "@%%p bra HAS%u;\n"
                 "add.u32 %%polls, %%polls, 1;\nsetp.lt.u32 %%p, %%polls, %u;\n@%%p bra POLL%u;\n"
                 "mov.u32 %%polls, 0;\nld.volatile.global.u32 %%t, [%%aborted];\n"
                 "setp.eq.u32 %%p, %%t, 0;\n@%%p bra POLL%u;\nHAS%u:\n",
                 q * SLOT_BYTES, q, q, (uint32_t)POLLS, q, q, q);
}

/* Adds the contributions in the order of the ranks. */
static void units_add(kit_text *text, const peer_type *is, uint32_t ranks)
{
    const uint32_t elements = UNIT / is->size;
    for (uint32_t q = 0; q < ranks; q++) {
        kit_text_add(text,
                     "mov.u32 %%w0, %%o0;\nmov.u32 %%w1, %%o1;\n"
                     "setp.eq.u32 %%p, %%rank, %u;\n@%%p bra HAS%u;\n",
                     q, q);
        unit_receive(text, q);
        for (uint32_t e = 0; e < elements; e++) {
            element_unpack(text, is, e);
            if (q == 0) {
                kit_text_add(text, "mov.%s %%s%u, %%v;\n", is->value, e);
            } else {
                kit_text_add(text, "add.rn.%s %%s%u, %%s%u, %%v;\n", is->value, e, e);
            }
        }
    }
    kit_text_add(text, "setp.eq.u32 %%p, %%mean, 0;\n@%%p bra STORE;\n");
    kit_text_add(text, "cvt.rn.%s.u32 %%v, %u;\n", is->value, ranks);
    for (uint32_t e = 0; e < elements; e++) {
        kit_text_add(text, "div.rn.%s %%s%u, %%s%u, %%v;\n", is->value, e, e);
    }
    kit_text_add(text, "STORE:\n");
}

#define AT(field) ((uint32_t)offsetof(peer_arguments, field))

static void registers_declare(kit_text *text, const peer_type *is)
{
    kit_text_add(text, ".reg .pred %%p;\n.reg .b16 %%h<4>;\n.reg .b%u %%e<2>;\n",
                 is->size == 8 ? 64 : 32);
    kit_text_add(text, ".reg .b32 %%n, %%t, %%polls, %%number, %%rank, %%mean, %%i, %%step, %%x, "
                       "%%y, %%count, %%units;\n.reg .b32 %%o<2>, %%w<2>, %%f<2>;\n");
    kit_text_add(text,
                 ".reg .b64 %%own, %%a, %%from, %%to, %%aborted, %%send, %%recv, %%at, "
                 "%%slot;\n.reg .b64 %%inbox<%u>;\n.reg .%s %%v, %%s<4>;\n",
                 (uint32_t)CUDA_PEER_RANKS, is->value);
}

static void parameters_load(kit_text *text, uint32_t ranks)
{
    kit_text_add(text,
                 "ld.param.u64 %%slot, [p + %u];\nld.param.u64 %%send, [p + %u];\n"
                 "ld.param.u64 %%recv, [p + %u];\nld.param.u64 %%aborted, [p + %u];\n"
                 "ld.param.u32 %%count, [p + %u];\nld.param.u32 %%number, [p + %u];\n"
                 "ld.param.u32 %%mean, [p + %u];\nld.param.u32 %%rank, [p + %u];\n",
                 AT(own), AT(send), AT(recv), AT(aborted), AT(count), AT(number), AT(is_mean),
                 AT(rank));
    for (uint32_t q = 0; q < ranks; q++) {
        kit_text_add(text, "ld.param.u64 %%inbox%u, [p + %u];\n", q, AT(inboxes) + 8 * q);
    }
}

typedef struct peer_source {
    const peer_type *is;
    uint32_t ranks;
} peer_source;

static hal_status kernel_write(const void *what, const hal_plugin_device *device, kit_text *text)
{
    const peer_source *source = what;
    const peer_type *is = source->is;
    const uint32_t elements = UNIT / is->size;
    (void)device; /* all that are offered sums take this target */
    kit_text_add(text,
                 ".version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry " CUDA_ENTRY
                 "(\n.param .align 8 .b8 p[%u])\n.maxntid %u, 1, 1\n{\n",
                 (uint32_t)sizeof(peer_arguments), (uint32_t)GROUP_ITEMS);
    registers_declare(text, is);
    parameters_load(text, source->ranks);
    kit_text_add(text,
                 "mov.u32 %%i, %%tid.x;\nmov.u32 %%x, %%ctaid.x;\nmov.u32 %%y, %%ntid.x;\n"
                 "mad.lo.u32 %%i, %%x, %%y, %%i;\nmov.u32 %%x, %%nctaid.x;\n"
                 "mul.lo.u32 %%step, %%x, %%y;\n"
                 "add.u32 %%units, %%count, %u;\nshr.u32 %%units, %%units, %u;\n"
                 "NEXT:\nsetp.ge.u32 %%p, %%i, %%units;\n@%%p bra DONE;\n"
                 "mul.lo.u32 %%x, %%i, %u;\nsub.u32 %%n, %%count, %%x;\n"
                 "mul.wide.u32 %%at, %%i, %u;\nadd.u64 %%from, %%send, %%at;\n"
                 "add.u64 %%to, %%recv, %%at;\n"
                 "mul.wide.u32 %%at, %%i, %u;\nadd.u64 %%own, %%slot, %%at;\n",
                 elements - 1, elements == 4 ? 2 : elements - 1, elements, (uint32_t)UNIT,
                 2 * (uint32_t)UNIT);
    unit_load(text, is);
    for (uint32_t q = 0; q < source->ranks; q++) {
        kit_text_add(text,
                     "setp.ne.u32 %%p, %%rank, %u;\nadd.u64 %%a, %%inbox%u, %%at;\n"
                     "@%%p st.volatile.global.v4.u32 [%%a], {%%o0, %%number, %%o1, %%number};\n",
                     q, q);
    }
    units_add(text, is, source->ranks);
    unit_store(text, is);
    kit_text_add(text, "add.u32 %%i, %%i, %%step;\nbra NEXT;\nDONE:\nret;\n}\n");
    return text->failed ? kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for %s",
                                   "a kernel that adds the data of several devices")
                        : HAL_OK;
}

/* ---- Creation ---- */

bool cuda_peer_sum_is_offered(void)
{
    const cuda_driver *cu = cuda_functions();
    int count = 0;
    if (cu->cuDeviceGetCount(&count) != 0 || count < 2) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        cuda_device one = 0, other = 0;
        if (cu->cuDeviceGet(&one, i) != 0 || cuda_describe_capability(one) < LEAST_CAPABILITY) {
            return false;
        }
        for (int j = 0; j < count; j++) {
            int can = i == j;
            if (cu->cuDeviceGet(&other, j) != 0 ||
                (i != j && cu->cuDeviceCanAccessPeer(&can, one, other) != 0) || !can) {
                return false;
            }
        }
    }
    return true;
}

static hal_status rank_create(cuda_peer_sum *sum, peer_rank *rank)
{
    const size_t bytes = 2 * (size_t)sum->ranks * SLOT_BYTES;
    cuda_stream stream = NULL;
    HAL_TRY(cuda_context_push(rank->device));
    hal_status status = cuda_check(cuda_functions()->cuMemAlloc_v2(&rank->inbox, bytes),
                                   "memory for sums of several devices");
    status = status == HAL_OK ? cuda_stream_acquire(rank->device, &stream) : status;
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuMemsetD8Async(rank->inbox, 0, bytes, stream),
                            "clearing memory for sums of several devices");
    }
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuStreamSynchronize(stream),
                            "clearing memory for sums of several devices");
    }
    cuda_stream_release(rank->device, stream);
    cuda_context_pop();
    return status;
}

hal_status cuda_peer_sum_create(hal_plugin_device *const *devices, uint32_t ranks,
                                cuda_peer_sum **sum)
{
    cuda_peer_sum *made = calloc(1, sizeof *made);
    void *aborted = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a communicator");
    }
    made->ranks = ranks;
    for (uint32_t i = 0; i < ranks; i++) {
        made->of[i].device = devices[i];
    }
    hal_status status = cuda_context_push(devices[0]);
    if (status == HAL_OK) {
        status = cuda_check(cuda_pinned_allocate(devices[0], sizeof *made->aborted, &aborted,
                                                 &made->aborted_address),
                            "memory for sums of several devices");
        cuda_context_pop();
    }
    if (status == HAL_OK) {
        made->aborted = aborted;
        *made->aborted = 0;
    }
    for (uint32_t i = 0; i < ranks && status == HAL_OK; i++) {
        status = rank_create(made, &made->of[i]);
        for (uint32_t j = 0; j < ranks; j++) {
            if (devices[i] != devices[j]) {
                cuda_device_can_access_peer(devices[i], devices[j]);
            }
        }
    }
    if (status != HAL_OK) {
        cuda_peer_sum_destroy(made);
        made = NULL;
    }
    *sum = made;
    return status;
}

/* The context is current. */
static hal_status kernel_prepare(const cuda_peer_sum *sum, peer_rank *rank, const peer_type *is,
                                 hal_plugin_kernel **kernel)
{
    const peer_source what = {is, sum->ranks};
    cuda_kernel_source source = {.name = "peer_sum", .write = kernel_write, .what = &what};
    *kernel = &rank->kernels[is->index];
    if ((*kernel)->module) {
        return HAL_OK;
    }
    kit_hash_add(source.key, "peer_sum", 8);
    kit_hash_add(source.key, &is->index, sizeof is->index);
    kit_hash_add(source.key, &what.ranks, sizeof what.ranks);
    return cuda_kernel_compile(rank->device, &source, *kernel);
}

static hal_status rank_run(cuda_peer_sum *sum, uint32_t rank, const cuda_peer_part *part,
                           const peer_type *is, bool is_mean, uint64_t count)
{
    const uint32_t elements = UNIT / is->size;
    const uint32_t units = (uint32_t)((count + elements - 1) / elements);
    const uint64_t slots = sum->number % 2 * (uint64_t)sum->ranks * SLOT_BYTES;
    peer_arguments arguments = {.own = sum->of[rank].inbox + slots,
                                .send = part->send,
                                .recv = part->recv,
                                .aborted = sum->aborted_address,
                                .count = (uint32_t)count,
                                .number = sum->number,
                                .is_mean = is_mean,
                                .rank = rank};
    hal_plugin_kernel *kernel = NULL;
    size_t bytes = sizeof arguments;
    void *extra[] = {CUDA_LAUNCH_BUFFER, &arguments, CUDA_LAUNCH_SIZE, &bytes, CUDA_LAUNCH_END};
    for (uint32_t q = 0; q < sum->ranks; q++) {
        arguments.inboxes[q] = sum->of[q].inbox + slots + rank * (uint64_t)SLOT_BYTES;
    }
    HAL_TRY(cuda_context_push(part->device));
    hal_status status = kernel_prepare(sum, &sum->of[rank], is, &kernel);
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuLaunchKernel(
                                kernel->function, (units + GROUP_ITEMS - 1) / GROUP_ITEMS, 1, 1,
                                GROUP_ITEMS, 1, 1, 0, part->stream, NULL, extra),
                            "launching a sum of several devices");
    }
    cuda_context_pop();
    return status;
}

hal_status cuda_peer_sum_run(cuda_peer_sum *sum, const cuda_peer_part *parts, uint32_t type,
                             bool is_mean, uint64_t count)
{
    const peer_type *is = type_find(type);
    hal_status status = HAL_OK;
    sum->number += 1 + (sum->number == UINT32_MAX); /* never 0, which inboxes have at first */
    for (uint32_t rank = 0; rank < sum->ranks && status == HAL_OK; rank++) {
        status = rank_run(sum, rank, &parts[rank], is, is_mean, count);
    }
    return status;
}

void cuda_peer_sum_abort(cuda_peer_sum *sum)
{
    *(volatile uint32_t *)sum->aborted = 1;
}

void cuda_peer_sum_destroy(cuda_peer_sum *sum)
{
    if (!sum) {
        return;
    }
    for (uint32_t i = 0; i < sum->ranks; i++) {
        peer_rank *rank = &sum->of[i];
        if (cuda_context_push(rank->device) != HAL_OK) {
            continue;
        }
        for (uint32_t t = 0; t < TYPES; t++) {
            if (rank->kernels[t].module) {
                cuda_functions()->cuModuleUnload(rank->kernels[t].module);
            }
        }
        if (rank->inbox != 0) {
            cuda_functions()->cuMemFree_v2(rank->inbox);
        }
        if (i == 0 && sum->aborted) {
            cuda_pinned_free(rank->device, sum->aborted);
        }
        cuda_context_pop();
    }
    free(sum);
}
