"""The theorems once more, in 50 digits, from the formulas and from nothing of the package."""

from mpmath import e, exp, log, mp, mpf, pi, sqrt

mp.dps = 50


def beta(norm, noise, lam, odds, gain):
    return norm + noise / sqrt(lam) * sqrt(2 * (odds + gain))


def jumps(H, T, g, k, lam, squares):
    """min over c by golden section; the closed form of the package is not used."""
    order = 2 * k * g / log(1 + k / lam)

    def at(c):
        if squares:
            return sqrt(T * (exp(2 * c) * order + H * k * g / c))
        return exp(c) * sqrt(T * order) + H * sqrt(k) * g / c

    low, high = mpf(-40), mpf(6)  # ln c
    ratio = (sqrt(mpf(5)) - 1) / 2
    for _ in range(100):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if at(exp(a)) < at(exp(b)) else (a, high)
    return at(exp(low))


def least_sum(H, T, g, k, lam, squares=False):
    block = sqrt(2 * H * k * g * T / log(1 + H * k / lam))
    return min(block, jumps(H, T, g, k, lam, squares), sqrt(k) * T)


def theorem1(p, version):
    """gR, gP are functions of n and λ, gP of one output."""
    H, tau, m, L = p["H"], p["tau"], p["m"], p["L"]
    T, odds = tau * H, log(3 / p["delta"])
    n, lamP = (tau - 1) * H, m * H
    bR = beta(p["BR"], p["sR"], H, odds, p["gR"](n, H))
    bP = beta(p["BP"], p["sP"], lamP, odds, m * p["gP"](n, lamP))
    top = p["BR"] * sqrt(p["kR"])
    if version == "improved":
        SR = least_sum(H, T, p["gR"](T, H), p["kR"], H)
        SP = least_sum(H, T, p["gP"](T, lamP), p["kP"], lamP)
        last = top * sqrt(2 * odds * tau * H * (H - 1) * (2 * H - 1) / mpf(6))
        return 2 * bR * SR + 2 * L * bP * SP + last
    grow = (e, e) if version == "paper" else (exp(p["kR"]), exp(p["kP"]))
    span = L * p["D"] + 2 * p["BR"] * H if version == "paper" else 4 * top * H
    return (
        2 * bR * sqrt(2 * grow[0] * H * p["gR"](T, H) * T)
        + 2 * L * bP * sqrt(2 * grow[1] * m * H * m * p["gP"](T, lamP) * T)
        + span * sqrt(2 * T * odds)
    )


def theorem2(p, version):
    H, tau, m = p["H"], p["tau"], p["m"]
    T, n, lamP = tau * H, (tau - 1) * H, m * H
    odds = log(3 * mpf(T))
    aR = beta(p["BR"], p["sR"], H, odds, p["gR"](n, H))
    aP = beta(p["BP"], p["sP"], lamP, odds, m * p["gP"](n, lamP))
    if version == "improved":
        SR = least_sum(H, T, p["gR"](T, H), p["kR"], H)
        SP = least_sum(H, T, p["gP"](T, lamP), p["kP"], lamP, squares=True)
        return 2 * aR * SR + 2 * p["L"] * aP * SP + mpf(8) / 3 * p["BR"] * sqrt(p["kR"])
    grow = (e, e) if version == "paper" else (exp(p["kR"]), exp(p["kP"]))
    SR = sqrt(2 * grow[0] * H * p["gR"](T, H) * T)
    SP = sqrt(2 * grow[1] * m * H * m * p["gP"](T, lamP) * T)
    if version == "paper":
        return 2 * aR * SR + 3 * p["meanL"] * aP * SP + 3 * p["BR"]
    return 2 * aR * SR + 2 * p["L"] * aP * SP + mpf(8) / 3 * p["BR"] * sqrt(p["kR"])


def level(E, s, count, delta, version):
    if version == "paper":  # b √ln(6 count a/δ), b = 2s, a = exp(E²/2s²)
        return 2 * s * sqrt(log(6 * count / mpf(delta)) + E**2 / (2 * s**2))
    return E + s * sqrt(2 * log(6 * count / mpf(delta)))


def cells(p, slope, tau, version):
    total = mpf(0)
    for axes, side in ((p["m"], p["c1"]), (p["q"], p["c2"])):
        along = 2 * mpf(side) * axes * tau**2 * slope
        total += axes * log(along if version == "paper" else max(1, mp.ceil(along)))
    return total


def gp(p, version, delta):
    """β_R, β_P, S_R, S_P, the two net terms without L, slope."""
    H, tau, m, d = p["H"], p["tau"], p["m"], p["m"] + p["q"]
    T = tau * H
    slope = max(
        level(p["ER'"], p["sR'"], d, delta, version),
        level(p["EP'"], p["sP'"], m * d, delta, version),
    )
    inside = cells(p, slope, tau, version) + log(pi**2 * tau**2 / mpf(delta))
    bR, bP = sqrt(2 * inside), sqrt(2 * (inside + log(mpf(m))))
    lR, lP = p["sR"] ** 2, p["sP"] ** 2
    wide = sqrt(mpf(m))
    if version == "improved":
        bP, wide = (wide + bR, 1) if m > 1 else (bR, 1)
        SR = least_sum(H, T, p["gR"](T, lR), p["kR"], lR)
        SP = least_sum(H, T, p["gP"](T, lP), p["kP"], lP, squares=p.get("squares", False))
    else:
        tR, tP = (1, 1) if version == "paper" else (p["kR"], p["kP"])
        whole = H - 1 if m == 1 else H
        SR = exp(p["gR"](H - 1, lR)) * sqrt((2 * lR + tR) * p["gR"](T, lR) * T)
        SP = exp(m * p["gP"](whole, lP)) * sqrt((2 * lP + tP) * m * p["gP"](T, lP) * T)
    net = 2 * H * pi**2 / (6 * slope)
    nets = (0, 0) if version == "paper" else (net * bR * p["LR"], net * bP * wide * p["LP"])
    return bR, bP, SR, SP, nets


def theorem3(p, version):
    H, tau, m, L = p["H"], p["tau"], p["m"], p["L"]
    bR, bP, SR, SP, nets = gp(p, version, p["delta"])
    C = level(p["ER"], p["sR0"], 1, p["delta"], version)
    T, odds = tau * H, log(6 / p["delta"])
    if version == "improved":
        last = C * sqrt(2 * odds * tau * H * (H - 1) * (2 * H - 1) / mpf(6))
    else:
        span = L * p["D"] + 2 * C * H if version == "paper" else 4 * C * H
        last = span * sqrt(2 * T * odds)
    slack = (L * sqrt(mpf(m)) + 1) * H * pi**2 / 3
    return 2 * bR * SR + 2 * L * bP * SP + slack + nets[0] + L * nets[1] + last


def theorem4(p, version):
    H, tau, m, L, mean = p["H"], p["tau"], p["m"], p["L"], p["meanL"]
    T = tau * H
    bR, bP, SR, SP, nets = gp({**p, "squares": True}, version, mpf(1) / T)
    slack = (1 + sqrt(mpf(m)) * mean) * pi**2 * H
    if version == "paper":
        return 2 * bR * SR + 3 * mean * bP * SP + 3 * p["ER"] + slack
    b, log_a = 2 * p["sR0"], p["ER"] ** 2 / (2 * p["sR0"] ** 2)
    x = b * sqrt(log_a + log(mpf(3) * T / 4))
    rare = min(x + b**2 / (2 * x), p["ER"] * mpf(3) * T / 4)
    total = 2 * bR * SR + 2 * L * bP * SP + mpf(8) / 3 * rare
    return total + slack / 3 + nets[0] + mean * nets[1]
