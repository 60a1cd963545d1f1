"""Published statistics of real clusters, which the synthetic generator follows.

Every number is a statistic of the public data set that its profile names (counts, quantiles and
shares; no rows of it), and tests hold the generator to them. No public data set has the similarity
of runs of one name and the frequency of a name: they are set so that the correlation of successive
durations is as published, and are marked.
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Shares of jobs, one per `SizeClass.quantiles_s`."""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of up to `gpus` devices: their durations (s, at LEVELS)."""

    gpus: float
    quantiles_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """One cluster.

    sizes: jobs by GPUs (devices of the whole job). classes: durations by size, ascending; the last
    holds all larger jobs. hours: submits by hour of the trace's day, as multiples of the mean.
    tenants: jobs by tenant, descending. mean_gap_s: between submits. correlation: of the logarithms
    of successive jobs' durations. burst and burst_gap_s: jobs that a user submits in a row, and the
    seconds between them; by these two the median gap and the correlation were set. outcomes: jobs
    that completed, that failed, and of which neither is said (all, where the data set is silent).
    """

    source: str
    sizes: tuple[tuple[float, int], ...]
    classes: tuple[SizeClass, ...]
    hours: tuple[float, ...]
    tenants: tuple[int, ...]
    mean_gap_s: float
    median_gap_s: float
    correlation: float
    burst: float
    burst_gap_s: float
    outcomes: tuple[int, int, int] = (0, 0, 1)


HELIOS = Profile(
    source="SenseTime Helios, cluster Venus, 77,574 jobs of 2020-03-18 to 07-31, capped at 48 h "
    "(S-Lab-System-Group/HeliosData, CC BY 4.0; Hu et al., SC '21)",
    sizes=(
        *((1, 39667), (8, 19724), (4, 5804), (16, 3978), (2, 3800), (32, 1828), (24, 781)),
        *((48, 246), (40, 234), (160, 196), (7, 165), (80, 145), (56, 130), (64, 128)),
    ),
    classes=(
        SizeClass(1, (1, 4, 13, 56, 214, 1977, 13988, 38290, 172800, 172800, 172800)),
        SizeClass(4, (1, 5, 12, 61, 199, 1869, 44043, 114234, 172800, 172800, 172800)),
        SizeClass(8, (1, 8, 25, 97, 190, 855, 23839, 59021, 172800, 172800, 172800)),
        SizeClass(16, (1, 8, 21, 116, 406, 12098, 61703, 111779, 172800, 172800, 172800)),
        SizeClass(160, (1, 5, 10, 39, 209, 1187, 46427, 121478, 172800, 172800, 172800)),
    ),
    hours=(
        *(0.92, 0.58, 0.58, 0.32, 0.26, 0.17, 0.16, 0.18, 0.37, 0.89, 1.46, 1.54),
        *(1.17, 1.34, 1.55, 1.56, 1.70, 1.74, 1.26, 1.28, 1.36, 1.33, 1.15, 1.13),
    ),
    # The public slice of Venus does not say which VC a job is of: shares of rank alone.
    tenants=(60, 30, 20, 15, 12, 10, 9, 8),
    mean_gap_s=151.3,
    median_gap_s=46,
    correlation=0.28,
    burst=2.2,
    burst_gap_s=50.0,
    # Of 1,452 jobs of one VC, September 2020; the other 416 were cancelled.
    outcomes=(702, 334, 416),
)

PHILLY = Profile(
    source="Microsoft Philly, 57,573 jobs of the first 70 % of its time (msr-fiddle/philly-traces "
    "as used by Sia, CC BY 4.0; Jeon et al., ATC '19)",
    sizes=((1, 54313), (4, 1229), (2, 1062), (8, 857), (16, 73), (32, 28), (12, 7), (24, 4)),
    classes=(
        SizeClass(1, (1, 51, 63, 186, 1400, 2721, 7920, 15818, 123131, 1150034, 3256045)),
        SizeClass(4, (2, 10, 13, 20, 797, 66659, 186571, 293764, 1030451, 2534681, 2750674)),
        SizeClass(
            32, (17, 124, 259, 3821, 72455, 218004, 481390, 666561, 1958214, 2721806, 4628226)
        ),
    ),
    hours=(
        *(0.67, 0.90, 0.71, 0.58, 0.58, 0.81, 0.84, 0.55, 0.53, 1.00, 1.01, 1.12),
        *(1.19, 1.29, 1.19, 1.36, 1.25, 0.38, 0.92, 1.41, 2.07, 1.51, 1.27, 0.86),
    ),
    tenants=(28743, 8698, 8476, 7195, 934, 908, 878, 800, 475, 246, 209, 8, 3),
    mean_gap_s=98.1,
    median_gap_s=7,
    correlation=0.52,
    burst=5.0,
    burst_gap_s=8.0,
)

ITP = Profile(
    source="Microsoft ITP, 48,130 jobs of seven clusters, March to May 2021 "
    "(microsoft/elasticflow-traces, MIT; Gu et al., ASPLOS '23)",
    sizes=((1, 39114), (8, 5574), (4, 1660), (2, 1158), (32, 289), (16, 286), (64, 49)),
    classes=(
        SizeClass(1, (600, 1080, 1516, 5546, 9086, 12403, 21107, 26015, 66845, 409322, 752969)),
        SizeClass(4, (601, 815, 1660, 3136, 4126, 9874, 64544, 138469, 612055, 994347, 1079960)),
        SizeClass(
            8, (600, 1091, 2019, 7714, 18607, 57229, 137331, 215828, 516801, 1001041, 1237189)
        ),
        SizeClass(
            64, (602, 770, 1337, 6376, 57226, 113607, 217338, 313149, 558066, 803895, 1022894)
        ),
    ),
    hours=(
        *(1.08, 1.18, 1.30, 1.27, 1.43, 1.12, 0.87, 1.05, 0.88, 0.96, 0.99, 0.91),
        *(0.78, 0.83, 0.73, 0.73, 0.78, 0.79, 0.84, 0.95, 0.93, 1.18, 1.28, 1.10),
    ),
    tenants=(15802, 12699, 11134, 3629, 3011, 1595, 260),
    mean_gap_s=107.5,
    median_gap_s=10,
    correlation=0.60,
    burst=7.0,
    burst_gap_s=13.0,
)

PAI = Profile(
    source="Alibaba PAI, 42,073 completed tasks of July and August 2020, parts of a GPU rounded "
    "up, capped at 48 h (alibaba/clusterdata cluster-trace-gpu-v2020, CC BY 4.0; Weng et al., "
    "NSDI '22)",
    sizes=(
        *((1, 32307), (10, 1574), (2, 1311), (20, 908), (5, 691), (4, 640), (3, 627), (50, 586)),
        *((8, 544), (16, 494), (30, 435), (12, 356), (40, 271), (25, 238), (15, 194), (100, 175)),
    ),
    classes=(
        SizeClass(1, (5, 26, 35, 100, 466, 3529, 11320, 21361, 58715, 171075, 172800)),
        SizeClass(8, (6, 51, 70, 168, 747, 4218, 16200, 37207, 119909, 172800, 172800)),
        SizeClass(16, (29, 105, 160, 326, 1309, 5243, 18492, 29056, 72806, 172800, 172800)),
        SizeClass(100, (18, 94, 176, 676, 2445, 7838, 20791, 38340, 80001, 172800, 172800)),
    ),
    hours=(
        *(0.64, 0.82, 0.90, 0.94, 1.07, 0.88, 0.88, 1.19, 1.32, 1.11, 1.06, 1.07),
        *(1.15, 1.08, 1.19, 1.20, 0.98, 0.93, 0.85, 0.65, 0.71, 1.36, 1.13, 0.88),
    ),
    # The tables name users, not tenants: shares of rank alone.
    tenants=(60, 30, 20, 15, 12, 10, 9, 8),
    mean_gap_s=97.2,
    median_gap_s=48,
    correlation=0.23,
    burst=1.9,
    burst_gap_s=60.0,
    outcomes=(1, 0, 0),
)

GPU_SHARING = Profile(
    source="Alibaba 2023, 7,255 pods that ran, with parts of GPUs "
    "(alibaba/clusterdata cluster-trace-gpu-v2023, research use; Weng et al., ATC '23)",
    sizes=(
        *((1, 3556), (0, 1052), (0.81, 1017), (0.47, 455), (0.32, 288), (0.65, 218), (0.46, 128)),
        *((0.23, 94), (0.55, 71), (0.16, 70), (0.59, 62), (0.22, 60), (0.37, 46), (8, 44)),
        *((0.48, 19), (0.11, 18), (4, 15), (2, 15)),
    ),
    classes=(
        SizeClass(0, (33, 94, 141, 151, 494, 1948, 13207, 19825, 28365, 3804793, 10143284)),
        SizeClass(0.99, (4, 35, 55, 144, 539, 1858, 9219, 20256, 76502, 4745269, 12475899)),
        SizeClass(8, (5, 54, 80, 208, 756, 2495, 6393, 14649, 372573, 9199182, 12537496)),
    ),
    hours=(
        *(1.44, 1.37, 1.06, 1.26, 1.25, 0.94, 0.86, 0.96, 0.71, 0.43, 0.69, 0.62),
        *(0.47, 0.48, 0.43, 0.87, 0.87, 1.24, 1.56, 1.36, 0.99, 1.28, 1.24, 1.61),
    ),
    # The data set has no tenants: shares of rank alone.
    tenants=(60, 30, 20, 15, 12, 10, 9, 8),
    mean_gap_s=400.0,
    median_gap_s=185,
    correlation=0.24,
    burst=1.9,
    burst_gap_s=200.0,
    outcomes=(192, 1870, 5193),
)

PROFILES = {"helios": HELIOS, "philly": PHILLY, "itp": ITP, "pai": PAI, "gpu-sharing": GPU_SHARING}
