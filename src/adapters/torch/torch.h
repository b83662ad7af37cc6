// PyTorch in the watched process: operators with shapes, modules, and where in the program they
// were called. Needs no libstdc++: this is for the collector.
#pragma once

namespace pasta::adapters::torch {

// The process is about to load this library. When it is PyTorch's, and Python does it, what watches
// PyTorch is made ready to begin as soon as PyTorch is there. Once in a process.
void on_library(const char* file) noexcept;

}  // namespace pasta::adapters::torch
