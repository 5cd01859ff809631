// Forwards: all of the stand-in library is in metal_stdlib.
#include <metal_stdlib>
