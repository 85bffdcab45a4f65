"""How the tables of the engine follow from published measurements.

Each fit reads ``data/*.csv`` (measurements with their sources) and gives the content of one table in
``advisor/engine/calibration``. ``manage.py calibrate`` runs them; the engine itself fits nothing.
"""
