/* The library that hal_needy.so needs and that no loader finds. Loaded by nobody. */
int needed_by_needy(void);

__attribute__((visibility("default"))) int needed_by_needy(void)
{
    return 1;
}
