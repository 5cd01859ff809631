"""Text of arrays, as NumPy prints them."""
import struct as _struct

from . import _core
from . import _dtypes as dt
from ._create import tolist

THRESHOLD, EDGE, WIDTH, DIGITS = 1000, 3, 75, 8

# Decimal digits that each float type holds, from where on NumPy prints an exponent.
_PRECISIONS = {dt.float16: 3, dt.bfloat16: 3, dt.float32: 6, dt.float64: 16}


def _shortest(value, dtype):
    """The digits and exponent of the shortest decimal number that is read as `value`."""
    if dtype is dt.float64:
        text = repr(value)
    else:
        pack = "<e" if dtype is dt.float16 else "<f"
        for digits in range(1, 10):
            text = f"{value:.{digits - 1}e}"
            try:
                if _struct.unpack(pack, _struct.pack(pack, float(text)))[0] == value:
                    break
            except OverflowError:
                pass
    return text


def _positional(value, dtype, most=DIGITS):
    text = _shortest(value, dtype)
    if "e" in text:
        digits, _, power = text.partition("e")
        whole = digits.replace(".", "").lstrip("-")
        decimals = max(0, len(whole) - 1 - int(power))
    else:
        decimals = len(text.partition(".")[2])
    shown = f"{float(text) if decimals <= most else value:.{min(decimals, most)}f}"
    return shown.rstrip("0") if "." in shown else shown + "."


def _scientific(value, dtype, digits=None):
    text = _shortest(value, dtype)
    if "e" not in text:
        text = f"{float(text):.17g}" if dtype is dt.float64 else text
        whole = text.replace(".", "").lstrip("-").lstrip("0").rstrip("0")
        text = f"{value:.{max(len(whole) - 1, 0)}e}"
    mantissa, _, power = text.partition("e")
    count = len(mantissa.partition(".")[2].rstrip("0"))
    if digits is None:
        return min(count, DIGITS)
    mantissa, _, power = f"{value:.{digits}e}".partition("e")
    mantissa = mantissa if "." in mantissa else mantissa + "."
    return f"{mantissa}e{int(power):+03d}"


def _float_texts(values, dtype):
    finite = [v for v in values if v == v and abs(v) != float("inf")]
    sizes = [abs(v) for v in finite if v]
    limit = 10.0 ** min(8, _PRECISIONS[dtype])
    scientific = bool(sizes) and (max(sizes) >= limit or min(sizes) < 1e-4 or
                                  max(sizes) / min(sizes) > 1000)
    if scientific:
        digits = max(_scientific(v, dtype) for v in finite)
        texts = {v: _scientific(v, dtype, digits) for v in set(finite)}
        places = max(len(t.partition("e")[2]) for t in texts.values())
        if places > 3:
            texts = {v: f"{t.partition('e')[0]}e{int(t.partition('e')[2]):+0{places}d}"
                     for v, t in texts.items()}
    else:
        texts = {v: _positional(v, dtype) for v in set(finite)}
        decimals = max((len(t.partition(".")[2]) for t in texts.values()), default=0)
        texts = {v: t + " " * (decimals - len(t.partition(".")[2])) for v, t in texts.items()}

    def one(v):
        if v != v:
            return "nan"
        if abs(v) == float("inf"):
            return "inf" if v > 0 else "-inf"
        text = texts[v]
        negative_zero = v == 0 and str(v)[0] == "-"
        return "-" + text.lstrip("-") if negative_zero else text.lstrip("-") if v == 0 else text
    return [one(v) for v in values]


def _complex_texts(values, part):
    """The parts in columns, the imaginary ones with their signs and with j after the digits."""
    reals = _float_texts([v.real for v in values], part)
    imags = [t if t[0] == "-" else "+" + t
             for t in _float_texts([v.imag for v in values], part)]
    wide, deep = max(map(len, reals)), max(map(len, imags))
    made = []
    for re, im in zip(reals, imags):
        digits = im.rjust(deep).rstrip()
        made.append(f"{re.rjust(wide)}{digits}j{' ' * (deep - len(digits))}")
    return made


def _flat(nested, depth):
    return [nested] if depth == 0 else [v for part in nested if part is not Ellipsis
                                        for v in _flat(part, depth - 1)]


def _summarized(x):
    """The elements in nested lists, with an Ellipsis in the place of the middle of long axes."""
    if x.size <= THRESHOLD:
        return tolist(x)
    cut = []
    for axis, length in enumerate(x.shape):
        if length > 2 * EDGE:
            x = _core.concatenate(axis, [_core.slice(x, axis, 0, EDGE, 1),
                                         _core.slice(x, axis, length - EDGE, EDGE, 1)])
            cut.append(axis)

    def mark(nested, axis):
        if axis == x.ndim:
            return nested
        parts = [mark(part, axis + 1) for part in nested]
        return parts[:EDGE] + [Ellipsis] + parts[EDGE:] if axis in cut else parts
    return mark(tolist(x), 0)


def _scalar_text(value, dtype):
    if dt.is_complex(dtype):
        part = dt.part_of(dtype)
        imag = _scalar_text(value.imag, part)
        return f"{_scalar_text(value.real, part)}{'' if imag[0] == '-' else '+'}{imag}j"
    if not dt.is_float(dtype) or value != value or abs(value) == float("inf"):
        return str(value)
    if value and not 1e-4 <= abs(value) < min(10.0 ** _PRECISIONS[dtype], 1e16):
        text = _shortest(value, dtype) if dtype is not dt.float64 else str(value)
        if "e" not in text:
            return _scientific(value, dtype, _scientific(value, dtype)).replace(".e", "e")
        mantissa, _, power = text.partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(power):+03d}"
    text = _positional(value, dtype, 20)
    text = text + "0" if text.endswith(".") else text
    return "-" + text.lstrip("-") if str(value)[0] == "-" else text


def array_text(x, prefix, separator):
    if x.size == 0:
        return "[]"
    nested = _summarized(x)
    values = _flat(nested, x.ndim)
    if dt.is_float(x.dtype):
        texts = _float_texts(values, x.dtype)
    elif dt.is_complex(x.dtype):
        texts = _complex_texts(values, dt.part_of(x.dtype))
    else:
        texts = [str(v) for v in values]
    width = max(map(len, texts))
    if x.dtype is dt.bool and x.ndim:
        width = 5
    most = WIDTH - x.ndim + 1 - (1 if prefix else 0)
    supply = iter(t.rjust(width) for t in texts)

    def lines(part, depth, indent):
        if depth == 0:
            return next(supply)
        if depth == 1:
            rows, row = [], ""
            for i, item in enumerate(part):
                word = "..." if item is Ellipsis else next(supply)
                last = i + 1 == len(part)
                if row and indent + 1 + len(row) + len(word) + 1 > most:
                    rows.append(row.rstrip())
                    row = ""
                row += word + ("" if last else separator)
            rows.append(row)
            return "[" + ("\n" + " " * (indent + 1)).join(rows) + "]"
        gap = separator.rstrip() + "\n" * (depth - 1) + " " * (indent + 1)
        return "[" + gap.join("..." if item is Ellipsis else lines(item, depth - 1, indent + 1)
                              for item in part) + "]"
    return lines(nested, x.ndim, len(prefix))


def array_repr(x):
    body = array_text(x, "array(", ", ")
    notes = []
    if x.size == 0 and x.shape != (0,):
        notes.append(f"shape={x.shape}")
    if x.size > THRESHOLD:
        notes.append(f"shape={x.shape}")
    if x.dtype not in (dt.int64, dt.bool, dt.float64) or x.size == 0:
        notes.append(f"dtype={x.dtype}")
    if not notes:
        return f"array({body})"
    text, tail = f"array({body},", ", ".join(notes) + ")"
    last = text.rpartition("\n")[2]
    return text + (" " if len(last) + len(tail) + 1 <= WIDTH else "\n      ") + tail


def array_str(x):
    if x.ndim == 0:
        return _scalar_text(tolist(x), x.dtype)
    return array_text(x, "", " ")
