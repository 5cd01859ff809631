/* The kernels of a context: keys of any length, and eviction of those that are not used. */
#include "ops_fixture.h"

#include "tensor/kernel_cache.h"

static void make_key(ops_cache_key *key, uint32_t words, uint32_t changed)
{
    key->count = 0;
    for (uint32_t i = 0; i < words; i++) {
        ops_cache_key_append(key, i + (i == changed));
    }
}

/* Every word counts, however many there are. */
static void long_keys_differ_in_every_word(void **state)
{
    const uint32_t lengths[] = {3, OPS_CACHE_KEY_WORDS, OPS_CACHE_KEY_WORDS + 1, 641, 3000};
    for (int l = 0; l < 5; l++) {
        ops_cache_key key;
        uint64_t plain[2], hash[2];
        make_key(&key, lengths[l], UINT32_MAX);
        ops_cache_find(test_context, &key, plain);
        for (uint32_t i = 0; i < lengths[l]; i += i < 10 || i > lengths[l] - 10 ? 1 : 7) {
            make_key(&key, lengths[l], i);
            ops_cache_find(test_context, &key, hash);
            assert_true(hash[0] != plain[0] || hash[1] != plain[1]);
        }
        make_key(&key, lengths[l], UINT32_MAX);
        ops_cache_find(test_context, &key, hash);
        assert_true(hash[0] == plain[0] && hash[1] == plain[1]);
    }
}

static ops_entry *find(uint64_t number)
{
    ops_cache_key key;
    uint64_t hash[2];
    key.count = 0;
    ops_cache_key_append(&key, 1000);
    ops_cache_key_append(&key, number);
    return ops_cache_find(test_context, &key, hash);
}

static void insert(uint64_t number)
{
    ops_cache_key key;
    uint64_t hash[2];
    ops_entry *entry;
    key.count = 0;
    ops_cache_key_append(&key, 1000);
    ops_cache_key_append(&key, number);
    assert_null(ops_cache_find(test_context, &key, hash));
    ok(ops_cache_insert(test_context, hash, NULL, number, &entry));
    assert_int_equal(entry->workspace_bytes, number);
}

/* Entries that are used again and again stay while four tables full of others come and go; every
 * entry that is found is the right one. */
static void entries_in_use_are_kept(void **state)
{
    enum { USED = 100, OTHERS = 4 * OPS_CACHE_KERNELS };
    for (uint64_t i = 0; i < USED; i++) {
        insert(i);
    }
    for (uint64_t i = 0; i < OTHERS; i++) {
        insert(USED + i);
        assert_non_null(find(i % USED));
        assert_true(test_context->kernels.count <= OPS_CACHE_KERNELS);
    }
    uint32_t kept = 0;
    for (uint64_t i = 0; i < USED + OTHERS; i++) {
        const ops_entry *entry = find(i);
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
