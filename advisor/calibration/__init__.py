"""How the tables of the engine follow from published measurements.

Each fit reads ``data/*.csv`` (measurements with their sources) and gives the content of one table in
``advisor/engine/calibration``. ``manage.py calibrate`` runs them; the engine itself fits nothing.

``data/gemm_shapes.csv`` is a part of what was published: of aiconfigurator-core 0.12.0 every shape of a compact grid
(M 128 to 32,768, nine pairs of N and K), all stacks, 16 bit, per-tensor fp8 and NVFP4, without block-scaled fp8; of
DeepBench and Vidur every shape with sides of 128 and more. ``data/gemm_laws_of_stacks.csv`` has what the law makes of
all shapes of each stack of the former.
"""
