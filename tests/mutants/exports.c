/* exports.c: a symbol that a careless build shows to all that is loaded later. */
int mutant_shows_this(int x);

__attribute__((visibility("default"))) int mutant_shows_this(int x)
{
    return x + 1;
}
