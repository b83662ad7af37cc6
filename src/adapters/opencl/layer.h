// The OpenCL layer of the collector. The ICD loader finds its entry points by name.
#pragma once

namespace pasta::adapters::opencl {

// In the child after fork().
void child_after_fork() noexcept;

}  // namespace pasta::adapters::opencl
