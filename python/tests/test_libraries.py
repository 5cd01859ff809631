"""scikit-learn's and SciPy's functions that take arrays of any namespace, with halyard's arrays on
the cpu plugin: their results are those of NumPy's arrays. The lists are what docs/python.md counts.
"""
import os

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import pytest

import halyard as hx

numpy = pytest.importorskip("numpy")
scipy = pytest.importorskip("scipy")
sklearn = pytest.importorskip("sklearn")

import importlib
import warnings

_random = numpy.random.default_rng(0)
X = _random.standard_normal((60, 5)).astype(numpy.float32)
LABELS = (X[:, 0] > 0).astype(numpy.int64)
GUESSED = (X[:, 0] + X[:, 1] > 0).astype(numpy.int64)
TARGET = X @ numpy.arange(1, 6).astype(numpy.float32)
CHANCE = (1 / (1 + numpy.exp(-X[:, 0] - X[:, 1]))).astype(numpy.float32)

# Estimators: (module, class, arguments, what is asked). Signs of components are free.
ESTIMATORS = [
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "full"}, "square"),
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "covariance_eigh"}, "square"),
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "randomized", "random_state": 0,
                              "power_iteration_normalizer": "QR"}, "square"),
    ("linear_model", "Ridge", {"solver": "svd"}, "regress"),
    ("linear_model", "RidgeClassifier", {"solver": "svd"}, "classify"),
    ("discriminant_analysis", "LinearDiscriminantAnalysis", {"solver": "svd"}, "classify"),
    ("naive_bayes", "GaussianNB", {}, "classify"),
    ("kernel_approximation", "Nystroem", {"n_components": 10, "random_state": 0}, "transform"),
] + [("preprocessing", name, {}, "transform") for name in
     ["MaxAbsScaler", "MinMaxScaler", "StandardScaler", "Normalizer", "PolynomialFeatures",
      "Binarizer"]] + [
    ("preprocessing", "LabelEncoder", {}, "labels"),
    ("preprocessing", "LabelBinarizer", {}, "labels"),
]

METRICS = {
    "labels": ["accuracy_score", "balanced_accuracy_score", "cohen_kappa_score",
               "confusion_matrix", "f1_score", "hamming_loss", "jaccard_score",
               "multilabel_confusion_matrix", "precision_score", "recall_score", "zero_one_loss"],
    "chances": ["brier_score_loss", "precision_recall_curve", "average_precision_score",
                "det_curve", "log_loss"],
    "numbers": ["mean_absolute_error", "mean_squared_error", "r2_score",
                "explained_variance_score", "max_error", "mean_absolute_percentage_error",
                "mean_gamma_deviance", "mean_poisson_deviance", "mean_tweedie_deviance",
                "mean_pinball_loss", "mean_squared_log_error", "median_absolute_error",
                "root_mean_squared_error", "root_mean_squared_log_error",
                "d2_absolute_error_score", "d2_tweedie_score", "d2_pinball_score"],
}

PAIRS = ["additive_chi2_kernel", "chi2_kernel", "cosine_similarity", "cosine_distances",
         "euclidean_distances", "linear_kernel", "polynomial_kernel", "rbf_kernel",
         "sigmoid_kernel", "laplacian_kernel", "paired_cosine_distances",
         "paired_euclidean_distances", "pairwise_distances", "manhattan_distances"]

# SciPy: by what the functions take.
ANY = {"special": ["erf", "erfc", "expit", "gammaln", "entr", "ndtr", "log_ndtr", "i0", "i1",
                   "logsumexp", "softmax", "log_softmax"],
       "stats": ["skew", "kurtosis", "zscore", "variation", "sem", "tmean", "tvar", "tstd", "tmin",
                 "tmax", "tsem", "iqr", "circmean", "circvar", "circstd", "lmoment", "rankdata",
                 "differential_entropy", "kstat", "kstatvar"],
       "integrate": ["trapezoid", "cumulative_trapezoid", "cumulative_simpson"],
       "cluster.vq": ["whiten"], "optimize": ["rosen"], "spatial.distance": ["pdist"],
       "ndimage": ["sobel"]}
POSITIVE = {"stats": ["gmean", "hmean", "gzscore", "entropy"]}
TWO = {"special": ["xlogy", "rel_entr", "kl_div", "chdtrc", "betaln", "gammainc"],
       "stats": ["ttest_ind", "ttest_rel"]}
STATISTIC = {"stats": ["skewtest", "kurtosistest", "normaltest", "jarque_bera", "chisquare",
                       "power_divergence"]}


@pytest.fixture(autouse=True)
def dispatch():
    with sklearn.config_context(array_api_dispatch=True), hx.Device("cpu"), \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(function, *arrays):
    """The function's results of halyard's arrays are those of NumPy's."""
    expected, got = function(*arrays), function(*[hx.asarray(a) for a in arrays])
    if not isinstance(expected, tuple):
        expected, got = (expected,), (got,)
    for a, b in zip(expected, got):
        numpy.testing.assert_allclose(numpy.asarray(b, dtype=float), numpy.asarray(a, dtype=float),
                                      rtol=2e-3, atol=2e-4)
    return got


@pytest.mark.parametrize("module, name, arguments, way", ESTIMATORS)
def test_estimators(module, name, arguments, way):
    kind = getattr(importlib.import_module("sklearn." + module), name)
    if way == "regress":
        same(lambda x, y: kind(**arguments).fit(x, y).predict(x), X, TARGET)
    elif way == "classify":
        same(lambda x, y: kind(**arguments).fit(x, y).predict(x), X, LABELS)
    elif way == "labels":
        same(lambda y: kind(**arguments).fit_transform(y), LABELS)
    else:
        power = 2 if way == "square" else 1
        made, = same(lambda x: kind(**arguments).fit_transform(x) ** power, X)
        assert isinstance(made, hx.Array)


@pytest.mark.parametrize("name", sum(METRICS.values(), []))
def test_metrics(name):
    from sklearn import metrics
    function = getattr(metrics, name)
    if name in METRICS["labels"]:
        same(function, LABELS, GUESSED)
    elif name in METRICS["chances"]:
        same(function, LABELS, CHANCE)
    else:
        same(function, TARGET * TARGET + 1, TARGET * TARGET + 1.5)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    from sklearn.metrics import pairwise
    same(getattr(pairwise, name), X * X, X * X + 1)


def _flat(lists):
    return [(module, name) for module, names in lists.items() for name in names]


@pytest.mark.parametrize("module, name", _flat(ANY) + _flat(POSITIVE) + _flat(TWO) +
                         _flat(STATISTIC))
def test_scipy(module, name):
    function = getattr(importlib.import_module("scipy." + module), name)
    if (module, name) in _flat(TWO):
        same(lambda x, y: _first(function(x, y)), X * X + 0.5, X * X * 0.9 + 0.7)
    elif (module, name) in _flat(STATISTIC):
        same(lambda x: function(x).statistic, X * X + 1)
    else:
        positive = (module, name) in _flat(POSITIVE)
        made, = same(function, X * X + 0.1 if positive else X)
        assert isinstance(made, hx.Array)


def _first(made):
    return getattr(made, "statistic", made)


def test_filters_and_signals():
    from scipy import ndimage, signal
    same(lambda x: ndimage.gaussian_filter(x, 1.0), X)
    same(lambda x: ndimage.uniform_filter(x, 3), X)
    same(lambda x, y: signal.convolve(x, y), X[:, 0], X[:9, 1])
    same(lambda x, y: signal.correlate(x, y), X[:, 0], X[:9, 1])
    same(signal.detrend, X[:, 0])
