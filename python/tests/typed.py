"""Checked by mypy --strict, not run: the types of a program."""
import halyard as hx


def mean_distance(x: hx.Array, center: hx.Array) -> float:
    distance = hx.sqrt(hx.sum((x - center) ** 2, axis=-1))
    return hx.mean(distance).item() / 2.0 if distance.size else 0.0


def spectrum(x: hx.Array) -> list[float]:
    u, s, vh = hx.linalg.svd(x, full_matrices=False)
    values: list[float] = s.tolist()
    return values


with hx.Device("cpu") as device:
    points = hx.random_normal((10, 3), seed=1, dtype=hx.float64)
    points[0] = 1.0
    nearest: hx.Array = hx.argmin(points @ points.T, axis=0)
    print(mean_distance(points, hx.zeros(3, dtype=hx.float64)), spectrum(points), 1 - points, nearest)

step = hx.compile(lambda a: hx.tanh(a) + 1)
z: hx.Array = step(points)
kernel = hx.Kernel("twice", group=64)
source, target = kernel.read("source", hx.float32), kernel.write("target", hx.float32)
with kernel.when(kernel.global_id() < 3):
    target[kernel.global_id()] = source[kernel.global_id()] * 2
twice: hx.Array = kernel(points, 3, groups=1)
