"""Writes src/expansions.inc: Chebyshev coefficients of the special functions. Needs mpmath.

expansions.py > ../src/expansions.inc

Each row is a function g(u), u from -1 to 1, as c[0] / 2 + sum c[k] T_k(u) with coefficients down to
1e-17 of the largest; operators_special_functions.cpp says how x becomes u.
"""
import mpmath as mp

mp.mp.dps = 40
TERMS = 44


def coefficients(g):
    """By the values at the zeros of T_TERMS."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / TERMS for k in range(TERMS)]
    values = [g(mp.cos(a)) for a in angles]
    c = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles)) / TERMS for j in range(TERMS)]
    bound = max(abs(x) for x in c) * mp.mpf("1e-17")
    while abs(c[-1]) < bound:
        c.pop()
    return c


def between(low, high):
    """x as a function of u."""
    return lambda u: low + (mp.mpf(high) - low) * (u + 1) / 2


def in_square(bound, g):
    """g of x where u = 2 (x / bound)^2 - 1."""
    return lambda u: g(bound * mp.sqrt((u + 1) / 2))


def beyond(bound, g):
    """g of x where u = 2 bound / x - 1."""
    return lambda u: g(2 * mp.mpf(bound) / (u + 1))


def beyond_square(bound, g):
    """g of x where u = 2 (bound / x)^2 - 1."""
    return lambda u: g(bound / mp.sqrt((u + 1) / 2))


def wave(order, part):
    """P or x Q of J = sqrt(2 / (pi x)) (P cos c - Q sin c), Y = (P sin c + Q cos c) by the same."""
    def value(x):
        c = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        root = mp.sqrt(mp.pi * x / 2)
        return root * (j * mp.cos(c) + y * mp.sin(c)) if part == "P" else \
            root * x * (y * mp.cos(c) - j * mp.sin(c))
    return value


def airy_wave(part):
    """Ai(-x) = (P cos c + Q sin c) / (sqrt(pi) x^(1/4)), c = 2/3 x^(3/2) - pi / 4."""
    def value(zeta):
        x = (mp.mpf(3) / 2 * zeta) ** (mp.mpf(2) / 3)
        c = zeta - mp.pi / 4
        scale = mp.sqrt(mp.pi) * x ** mp.mpf("0.25")
        a, b = scale * mp.airyai(-x), scale * mp.airybi(-x)
        return a * mp.cos(c) - b * mp.sin(c) if part == "P" else zeta * (a * mp.sin(c) + b * mp.cos(c))
    return value


def airy_tail(zeta):
    x = (mp.mpf(3) / 2 * zeta) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** mp.mpf("0.25") * mp.exp(zeta) * mp.airyai(x)


def log_gamma(x):
    """lgamma(x) / ((x - 1) (x - 2)), which has no zero from 1 to 3."""
    if abs(x - 2) < mp.mpf("1e-15"):
        return 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def rest_of_y(order):
    """Y - 2 / pi log(x) J, of order 1 without the pole and divided by x."""
    def value(x):
        r = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
        return r if order == 0 else (r + 2 / (mp.pi * x)) / x
    return value


def rest_of_k(order):
    """K + log(x) I, of order 1: (K - log(x) I - 1 / x) / x."""
    def value(x):
        if order == 0:
            return mp.besselk(0, x) + mp.log(x) * mp.besseli(0, x)
        return (mp.besselk(1, x) - mp.log(x) * mp.besseli(1, x) - 1 / x) / x
    return value


ROWS = {
    "ERFCX": lambda u: (1 + 2 * (x := mp.mpf("3.75") * (1 + u) / (1 - u))) * mp.exp(x * x) * mp.erfc(x),
    "LOG_GAMMA_1_3": lambda u: log_gamma(between(1, 3)(u)),
    "J0_TO_8": in_square(8, lambda x: mp.besselj(0, x)),
    "J1_TO_8": in_square(8, lambda x: mp.besselj(1, x) / x),
    "Y0_TO_8": in_square(8, rest_of_y(0)),
    "Y1_TO_8": in_square(8, rest_of_y(1)),
    "P0_FROM_8": beyond_square(8, wave(0, "P")),
    "Q0_FROM_8": beyond_square(8, wave(0, "Q")),
    "P1_FROM_8": beyond_square(8, wave(1, "P")),
    "Q1_FROM_8": beyond_square(8, wave(1, "Q")),
    "I0E_TO_8": lambda u: mp.exp(-(x := between(0, 8)(u))) * mp.besseli(0, x),
    "I1E_TO_8": lambda u: mp.exp(-(x := between(0, 8)(u))) * mp.besseli(1, x) / x,
    "I0E_FROM_8": beyond(8, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x)),
    "I1E_FROM_8": beyond(8, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x)),
    "K0_TO_2": in_square(2, rest_of_k(0)),
    "K1_TO_2": in_square(2, rest_of_k(1)),
    "K0E_FROM_2": beyond(2, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x)),
    "K1E_FROM_2": beyond(2, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x)),
    "AIRY_MIDDLE": lambda u: mp.airyai(between(-4, 2)(u)),
    "AIRY_TAIL": beyond(mp.mpf(4) / 3 * mp.sqrt(2), airy_tail),
    "AIRY_P": beyond_square(mp.mpf(16) / 3, airy_wave("P")),
    "AIRY_Q": beyond_square(mp.mpf(16) / 3, airy_wave("Q")),
}


def main():
    print("// Chebyshev coefficients, by tools/expansions.py.")
    for name, g in ROWS.items():
        c = coefficients(g)
        print(f"// clang-format off\nconstexpr double {name}[] = {{")
        for i in range(0, len(c), 4):
            print("    " + ", ".join(mp.nstr(x, 18) for x in c[i:i + 4]) + ",")
        print("};\n// clang-format on")


if __name__ == "__main__":
    main()
