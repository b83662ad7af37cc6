// What the collector and what is compiled against PyTorch know of each other. C, because the two
// are built by different compilers at different times; the text of this file is part of what is
// compiled in the watched process.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct PastaOperator {
  const char* name;
  size_t name_bytes;
  const char* arguments;  // a JSON object, or nothing
  size_t arguments_bytes;
  // Or a number that stands for it, and who makes the text where it has not been seen: sets the two
  // above.
  uint64_t arguments_key;
  void (*describe)(struct PastaOperator* what);
  const void* function;  // of the extension
  uint64_t sequence;     // autograd's number + 1, or 0
  uint64_t
      forward_thread;      // autograd's number of the thread whose operator this is the backward of
  uint64_t thread;         // and of this thread
  uint32_t is_user_scope;  // named by record_function
  uint32_t is_backward;    // of autograd\'s engine
  uint32_t wants_place;    // may have been called from Python directly
};

// What has to be ended together.
struct PastaOpened {
  uint64_t range;   // 0: nothing is kept
  uint64_t places;  // ranges of Python around it
};

struct PastaTorch {
  size_t size;
  struct PastaOpened (*open)(struct PastaOperator* what);
  void (*close)(struct PastaOpened opened);
  // Once: how to be called no more, and again. From any thread.
  void (*started)(void (*call)(int on));
};
