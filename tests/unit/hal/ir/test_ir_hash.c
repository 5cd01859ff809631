/* The hash of kernels: all that a kernel means counts, and nothing else. */
#include "ir_fixture.h"

#define HEAD(group, units, binding, shared, scalar)                                                \
    "kernel k\ngroup " group "\ngroups_per_unit " units "\nbinding x " binding                     \
    "\nshared s " shared "\nscalar n " scalar "\n"
#define BODY "%0 = scalar u32 n\n%1 = constant u32 3\n%2 = add u32 %0, %1\n"
#define PLAIN HEAD("64 1 1", "1", "f32 read", "f32 16", "u32 0")

static void hash_of(const char *text, uint64_t hash[2])
{
    hal_ir_kernel *kernel = ir_read(text);
    hal_ir_hash(kernel, hash);
    hal_ir_kernel_destroy(kernel);
}

TEST(all_that_is_meant_counts)
{
    static const char *const texts[] = {
        PLAIN BODY,
        HEAD("1 64 1", "1", "f32 read", "f32 16", "u32 0") BODY,
        HEAD("64 1 1", "2", "f32 read", "f32 16", "u32 0") BODY,
        HEAD("64 1 1", "1", "f16 read", "f32 16", "u32 0") BODY,
        HEAD("64 1 1", "1", "f32 write", "f32 16", "u32 0") BODY,
        HEAD("64 1 1", "1", "f32 read", "f32 17", "u32 0") BODY,
        HEAD("64 1 1", "1", "f32 read", "f32 16", "u32 4") BODY,
        PLAIN "scalar_bytes 8\n" BODY,
        PLAIN BODY "barrier\n",
        PLAIN BODY "%3 = constant u32 3\n",
        PLAIN BODY "%3 = constant u32 4\n",
        PLAIN BODY "%3 = constant i32 3\n",
        PLAIN BODY "%3 = shuffle_xor u32 %2, 1\n",
        PLAIN BODY "%3 = shuffle_xor u32 %2, 2\n",
        PLAIN BODY "%3 = sub u32 %0, %1\n",
        PLAIN BODY "%3 = sub u32 %1, %0\n",
        PLAIN BODY "%3 = constant f32 2.0\n%4 = exp f32 %3\n",
        PLAIN BODY "%3 = constant f32 2.0\n%4 = exp.fast f32 %3\n",
        "fragment k\n",
        "kernel k\n",
    };
    enum { COUNT = sizeof texts / sizeof texts[0] };
    uint64_t hashes[COUNT][2];
    for (int i = 0; i < COUNT; i++) {
        hash_of(texts[i], hashes[i]);
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(hashes[i], hashes[j], sizeof hashes[i]);
        }
    }
}

TEST(names_do_not_count)
{
    uint64_t one[2], two[2];
    hash_of("kernel a\nbinding x f32 read\nscalar n u32 0\n%0 = scalar u32 n\n", one);
    hash_of("kernel b\nbinding longer f32 read\nscalar m u32 0\n%q = scalar u32 m\n", two);
    assert_memory_equal(one, two, sizeof one);
}

TEST(the_place_in_the_pool_does_not_count)
{
    hal_ir_kernel *kernel = ir_read("kernel k\n%0 = constant u32 5\n%1 = constant u32 6\n");
    uint64_t one[2], two[2];
    hal_ir_hash(kernel, one);
    hal_ir_record records[2] = {kernel->records[0], kernel->records[1]};
    const uint64_t constants[3] = {1, 6, 5};
    records[0].aux = 2;
    kernel->records = records;
    kernel->constants = constants;
    kernel->constant_count = 3;
    hal_ir_hash(kernel, two);
    assert_memory_equal(one, two, sizeof one);
    hal_ir_kernel_destroy(kernel);
}

TEST(it_is_the_same_in_every_process)
{
    uint64_t hash[2];
    hash_of(PLAIN BODY, hash);
    /* Appended opcodes do not change it: caches on disk go by it. */
    assert_int_equal(hash[0], UINT64_C(0xad799c1a085d9565));
    assert_int_equal(hash[1], UINT64_C(0xe047205c5a45a952));
}

TEST(long_kernels_hash_to_their_end)
{
    uint64_t one[2], two[2];
    for (int last = 0; last < 2; last++) {
        hal_ir_builder *b = ir_kernel_begin();
        for (uint32_t i = 0; i < 3000; i++) {
            hal_ir_u32(b, i);
        }
        hal_ir_u32(b, 5000 + (uint32_t)last);
        hal_ir_kernel *kernel = ir_finish(b);
        hal_ir_hash(kernel, last ? two : one);
        hal_ir_kernel_destroy(kernel);
    }
    assert_memory_not_equal(one, two, sizeof one);
}

UNIT_MAIN(NULL, NULL)
