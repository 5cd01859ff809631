/* unlinked.c: uses a library that the mutant is not linked with: it loads only into programs that
 * have it. */
#include <math.h>

double mutant_needs_math(double x);

__attribute__((used)) double mutant_needs_math(double x)
{
    return lgamma(x);
}
