"""The peers, each as a user who already holds a model at n = 2,000 would use it.

Hyper-parameters are the true ones and never optimised. Libraries are imported where they are
used, because every library runs in a process of its own and a missing one must not stop the rest.
"""

from __future__ import annotations

import copy
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np
from problem import DIMENSION, LENGTHSCALE, NOISE_VARIANCE, Array, Contender

EXACT = 10**6  # as max_cholesky_size: always a Cholesky factor, never CG or Lanczos


class ScikitLearn(Contender):
    name = "scikit-learn"
    library = "scikit-learn"
    packages = ("scikit-learn",)
    rows = frozenset({"append", "predict"})

    def __init__(self, X: Array, y: Array) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF

        self.X, self.y = X, y
        model = GaussianProcessRegressor(RBF(LENGTHSCALE), alpha=NOISE_VARIANCE, optimizer=None)
        self.model = model.fit(X, y)

    def append(self, X: Array, y: Array) -> ScikitLearn:
        return ScikitLearn(np.concatenate([self.X, X]), np.concatenate([self.y, y]))  # a refit

    def mean(self, Z: Array) -> Array:
        result: Array = self.model.predict(Z)
        return result

    def predict(self, Z: Array) -> tuple[Array, Array]:
        mean, std = self.model.predict(Z, return_std=True)
        return mean, std


class GPyTorch(Contender):
    """ExactGP, everything exact: no fast_pred_var, so each prediction factors K anew."""

    name = "gpytorch exact"
    library = "torch"
    packages = ("torch", "gpytorch", "linear_operator")
    rows = frozenset({"predict"})

    dtype: ClassVar[str] = "float64"
    cached: ClassVar[bool] = False  # fast_pred_var: keep a root of the inverse
    cholesky_size: ClassVar[int] = EXACT
    root_size: ClassVar[int] = 100
    cg_tolerance: ClassVar[float] = 0.01
    repaired: ClassVar[bool] = False

    def __init__(self, X: Array, y: Array) -> None:
        import gpytorch
        import torch

        dtype = getattr(torch, self.dtype)

        class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
            def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
                super().__init__(X, y, likelihood)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.RBFKernel()

            def forward(self, Z: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(
                    self.mean_module(Z), self.covar_module(Z)
                )

        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.model: Any = Model(self._tensor(X), self._tensor(y), likelihood).to(dtype)
        # After .to(): set in float32, the noise would be 0.01 only to single precision.
        likelihood.noise = NOISE_VARIANCE
        self.model.covar_module.lengthscale = LENGTHSCALE
        self.model.eval()
        self.predict(X[:1])  # the caches a user holds

    def _tensor(self, array: Array) -> Any:
        import torch

        return torch.as_tensor(array, dtype=getattr(torch, self.dtype))

    def _settings(self) -> ExitStack:
        """All that matters, explicitly: importing BoTorch changes GPyTorch's own defaults."""
        import gpytorch
        import torch

        settings = gpytorch.settings
        stack = ExitStack()
        for context in (
            torch.no_grad(),
            settings.debug(False),
            settings.fast_pred_var(self.cached),
            settings.max_cholesky_size(self.cholesky_size),
            settings.max_root_decomposition_size(self.root_size),
            settings.eval_cg_tolerance(self.cg_tolerance),
            settings.max_eager_kernel_size(512),
            settings.fast_computations(True, True, True),  # only above max_cholesky_size
        ):
            stack.enter_context(context)
        return stack

    def append(self, X: Array, y: Array) -> GPyTorch:
        from gpytorch.utils.memoize import add_to_cache, get_from_cache

        twin = copy.copy(self)
        with self._settings():
            twin.model = self.model.get_fantasy_model(self._tensor(X), self._tensor(y))
            if self.repaired:
                strategy = twin.model.prediction_strategy
                add_to_cache(
                    strategy, "mean_cache", get_from_cache(strategy, "mean_cache"), "ignore"
                )
        return twin

    def mean(self, Z: Array) -> Array:
        with self._settings():
            result: Array = self.model(self._tensor(Z)).mean.numpy()
        return result

    def predict(self, Z: Array) -> tuple[Array, Array]:
        with self._settings():
            posterior = self.model(self._tensor(Z))
            return posterior.mean.numpy(), posterior.variance.sqrt().numpy()

    def _sample(self, Z: Array, count: int, seed: int) -> Array:
        import torch

        torch.manual_seed(seed)
        with self._settings():
            sample = self.model(self._tensor(Z)).rsample(torch.Size([count]))
            result: Array = sample.numpy()
        return result

    def draw(self, Z: Array, seed: int) -> Array:
        result: Array = self._sample(Z, 1, seed)[0]
        return result

    def draws(self, Z: Array, count: int) -> Array:
        return self._sample(Z, count, 0)


class GPyTorchCached(GPyTorch):
    """The same exact answer with the dense inverse factor kept, so that a prediction is a GEMM.

    Not the documented use of fast_pred_var, but the fastest exact one; BoTorch does the same.
    """

    name = "gpytorch cached root"
    rows = frozenset({"append", "predict", "draw"})
    cached = True
    # A joint sample factors the covariance of its points: at 10,000 that is some 20 s and 7 GiB.
    draw_points = 2_000


class GPyTorchRepaired(GPyTorchCached):
    """get_fantasy_model stores the updated mean under a key that is never read (GPyTorch issue
    2669), so the next prediction solves from scratch. Here it is stored where it is read."""

    name = "gpytorch cached root, mean cache repaired"
    rows = frozenset({"append"})
    repaired = True


class GPyTorchFloat32(GPyTorchCached):
    name = "gpytorch cached root, float32"
    rows = frozenset({"predict"})
    dtype = "float32"


class GPyTorchLove100(GPyTorch):
    """LOVE as it comes: CG for the mean, a Lanczos root of rank 100 for the variance."""

    name = "gpytorch LOVE 100"
    rows = frozenset({"append", "predict"})
    cached = True
    cholesky_size = 800


class GPyTorchLove500(GPyTorchLove100):
    """LOVE of rank 500. A tight CG and the repaired cache (above) only help it: the tolerance
    costs when the model is first used, which is not timed, and the default mean is off by half
    a standard deviation."""

    name = "gpytorch LOVE 500, tight CG, mean cache repaired"
    root_size = 500
    cg_tolerance = 1e-5
    repaired = True


class GPyTorchLove300(GPyTorchLove500):
    """About the smallest rank that keeps the std within 0.5 % on this problem."""

    name = "gpytorch LOVE 300, tight CG, mean cache repaired"
    root_size = 300


class GPyTorchLove300AsShipped(GPyTorchLove300):
    """The same without our repair."""

    name = "gpytorch LOVE 300, tight CG"
    rows = frozenset({"append"})
    repaired = False


class BoTorch(Contender):
    name = "botorch"
    library = "botorch"  # a process apart from GPyTorch's, whose defaults it changes
    packages = ("botorch",)
    rows = frozenset({"append", "predict", "draw"})

    def __init__(self, X: Array, y: Array) -> None:
        import torch
        from botorch.models import SingleTaskGP
        from gpytorch.kernels import RBFKernel
        from gpytorch.means import ZeroMean

        self.model: Any = SingleTaskGP(
            torch.as_tensor(X),
            torch.as_tensor(y)[:, None],
            covar_module=RBFKernel(),
            mean_module=ZeroMean(),
            outcome_transform=None,  # the default would standardise the targets
        )
        self.model.likelihood.noise = NOISE_VARIANCE
        self.model.covar_module.lengthscale = LENGTHSCALE
        self.model.eval()
        self.predict(X[:1])

    def append(self, X: Array, y: Array) -> BoTorch:
        import torch

        twin = copy.copy(self)
        with torch.no_grad():
            twin.model = self.model.condition_on_observations(
                torch.as_tensor(X), torch.as_tensor(y)[:, None]
            )
        return twin

    def mean(self, Z: Array) -> Array:
        import torch

        with torch.no_grad():
            result: Array = self.model.posterior(torch.as_tensor(Z)).mean.numpy()[:, 0]
        return result

    def predict(self, Z: Array) -> tuple[Array, Array]:
        import torch

        with torch.no_grad():
            posterior = self.model.posterior(torch.as_tensor(Z))
            return posterior.mean.numpy()[:, 0], posterior.variance.sqrt().numpy()[:, 0]

    def _update(self) -> Any:
        from botorch.sampling.pathwise import gaussian_update

        return gaussian_update

    def _paths(self, Z: Array, count: int, seed: int) -> Array:
        import torch
        from botorch.sampling.pathwise import draw_matheron_paths

        torch.manual_seed(seed)
        with torch.no_grad():
            paths = draw_matheron_paths(
                self.model, torch.Size([count]), update_strategy=self._update()
            )
            result: Array = paths(torch.as_tensor(Z)).numpy()
        return result

    def draw(self, Z: Array, seed: int) -> Array:
        result: Array = self._paths(Z, 1, seed)[0]
        return result

    def draws(self, Z: Array, count: int) -> Array:
        # Paths of one call share their random features, and few sets of features misstate the
        # covariance of one draw by several per cent: many calls.
        batch = 40
        return np.concatenate([self._paths(Z, batch, seed) for seed in range(count // batch)])


class BoTorchCached(BoTorch):
    """Pathwise draws with the factor of K handed in; by default every draw factors K anew."""

    name = "botorch, factor handed in"
    rows = frozenset({"draw"})

    def __init__(self, X: Array, y: Array) -> None:
        super().__init__(X, y)
        import torch
        from linear_operator.operators import TriangularLinearOperator

        with torch.no_grad():
            K = self.model.covar_module(torch.as_tensor(X)).to_dense()
            noise = NOISE_VARIANCE * torch.eye(len(X), dtype=K.dtype)
            self.factor = TriangularLinearOperator(torch.linalg.cholesky(K + noise))

    def _update(self) -> Any:
        from functools import partial

        from botorch.sampling.pathwise import gaussian_update

        return partial(gaussian_update, scale_tril=self.factor)


class GPJax(Contender):
    """Conjugate posterior under jit; appending is conditioning anew on all the data."""

    name = "gpjax"
    library = "gpjax"
    packages = ("gpjax", "jax", "jaxlib")
    rows = frozenset({"append", "predict", "draw"})

    def __init__(self, X: Array, y: Array) -> None:
        import gpjax
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
        prior = gpjax.gps.Prior(
            mean_function=gpjax.mean_functions.Zero(),
            kernel=gpjax.kernels.RBF(lengthscale=LENGTHSCALE, variance=1.0, n_dims=DIMENSION),
            jitter=1e-10,  # the default 1e-6 would change the model
        )
        self.X, self.y = X, y
        self.joint = prior * gpjax.likelihoods.Gaussian(obs_stddev=jnp.sqrt(NOISE_VARIANCE))

        def condition(joint: Any, X: Any, y: Any) -> Any:
            return joint.condition(gpjax.Dataset(X=X, y=y[:, None]))

        def moments(posterior: Any, Z: Any) -> Any:
            marginals = posterior(Z, covariance="diagonal")
            return marginals.mean, jnp.sqrt(marginals.variance)

        def sample(posterior: Any, Z: Any, key: Any, count: int) -> Any:
            # 1,024 Fourier features as in BoTorch: the default of 100 is not close.
            return posterior.sample_approx(count, key, num_features=1024)(Z)

        # Posteriors are arguments: what a jitted function closes over is folded as a constant.
        # jax.jit, because GPJax's Dataset does not survive equinox.filter_jit.
        self._condition = jax.jit(condition)
        self._moments = jax.jit(moments)
        self._sample = jax.jit(sample, static_argnums=3)
        self.posterior: Any = self._condition(self.joint, X, y)

    def append(self, X: Array, y: Array) -> GPJax:
        twin = copy.copy(self)
        twin.X, twin.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])
        twin.posterior = self._condition(self.joint, twin.X, twin.y)
        return twin

    def predict(self, Z: Array) -> tuple[Array, Array]:
        mean, std = self._moments(self.posterior, Z)
        return np.asarray(mean), np.asarray(std)

    def _draws(self, Z: Array, count: int, seed: int) -> Array:
        import jax

        return np.asarray(self._sample(self.posterior, Z, jax.random.key(seed), count)).T

    def draw(self, Z: Array, seed: int) -> Array:
        result: Array = self._draws(Z, 1, seed)[0]
        return result

    def draws(self, Z: Array, count: int) -> Array:
        batch = 20  # features are shared within a call, as in BoTorch
        return np.concatenate([self._draws(Z, batch, seed) for seed in range(count // batch)])


CONTENDERS: tuple[type[Contender], ...] = (
    ScikitLearn,
    GPyTorch,
    GPyTorchCached,
    GPyTorchRepaired,
    GPyTorchFloat32,
    GPyTorchLove100,
    GPyTorchLove300,
    GPyTorchLove300AsShipped,
    GPyTorchLove500,
    BoTorch,
    BoTorchCached,
    GPJax,
)
