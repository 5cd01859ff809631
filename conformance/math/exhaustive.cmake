# Loops over the polynomials vectorise only without errno and traps.
set_source_files_properties(math/exhaustive_run.c PROPERTIES
    COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math")
halyard_conformance_test(math_device conformance 300
    hal-math-exhaustive --device cpu --step 8191 --samples 100000)
