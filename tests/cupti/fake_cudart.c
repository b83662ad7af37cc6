/* Stands for a library of CUDA, or of a package of Python: where it lies, a CUPTI may lie near. */
int fake_cudart(void);
__attribute__((visibility("default"))) int fake_cudart(void) { return 0; }
