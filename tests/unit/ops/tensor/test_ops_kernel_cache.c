/* The kernels of a context: keys of any length, and eviction of those that are not used. */
#include "ops_fixture.h"

#include "tensor/kernel_cache.h"

#include <hal/ir_build.h>

static void make_key(ops_cache_key *key, uint32_t words, uint32_t changed)
{
    ops_cache_key_begin(key, OPS_FAMILY_POINTWISE);
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t word = i + (i == changed);
        ops_cache_key_append(key, &word, sizeof word);
    }
}

/* Every byte counts, however many there are. */
static void long_keys_differ_in_every_word(void **state)
{
    const uint32_t most = OPS_CACHE_KEY_BYTES / 8, lengths[] = {3, most - 1, most, 641, 3000};
    for (int l = 0; l < 5; l++) {
        ops_cache_key key;
        uint64_t plain[2], hash[2];
        make_key(&key, lengths[l], UINT32_MAX);
        ops_cache_key_hash(&key, plain);
        for (uint32_t i = 0; i < lengths[l]; i += i < 10 || i > lengths[l] - 10 ? 1 : 7) {
            make_key(&key, lengths[l], i);
            ops_cache_key_hash(&key, hash);
            assert_true(hash[0] != plain[0] || hash[1] != plain[1]);
        }
        make_key(&key, lengths[l], UINT32_MAX);
        ops_cache_key_hash(&key, hash);
        assert_true(hash[0] == plain[0] && hash[1] == plain[1]);
    }
}

static ops_entry *entry_find(uint64_t number, uint64_t hash[2])
{
    ops_cache_key key;
    ops_cache_key_begin(&key, 1000);
    ops_cache_key_append(&key, &number, sizeof number);
    return ops_cache_find(test_context, &key, hash);
}

static void entry_insert(uint64_t number)
{
    uint64_t hash[2];
    ops_entry *entry;
    assert_null(entry_find(number, hash));
    ok(ops_cache_insert(test_context, hash, NULL, number, &entry));
    assert_int_equal(entry->workspace_bytes, number);
}

/* Entries that are used again and again stay while four tables full of others come and go; every
 * entry that is found is the right one. */
static void entries_in_use_are_kept(void **state)
{
    uint64_t hash[2];
    enum { USED = 100, OTHERS = 4 * OPS_CACHE_KERNELS };
    for (uint64_t i = 0; i < USED; i++) {
        entry_insert(i);
    }
    for (uint64_t i = 0; i < OTHERS; i++) {
        entry_insert(USED + i);
        assert_non_null(entry_find(i % USED, hash));
        assert_true(test_context->kernels.count <= OPS_CACHE_KERNELS);
    }
    uint32_t kept = 0;
    for (uint64_t i = 0; i < USED + OTHERS; i++) {
        const ops_entry *entry = entry_find(i, hash);
        assert_true(!entry || entry->workspace_bytes == i);
        kept += entry != NULL;
        assert_true(entry || i >= USED);
    }
    assert_int_equal(kept, OPS_CACHE_KERNELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_keys_differ_in_every_word),
                                       cmocka_unit_test(entries_in_use_are_kept)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
