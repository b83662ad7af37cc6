/* A library with the device's runtime in it, as the compiler names its module. */
__attribute__((section("__nv_module_id"), used)) static const char id[] =
    "def _22_cuda_device_runtime_cu_3ecce0c0_2317245";
