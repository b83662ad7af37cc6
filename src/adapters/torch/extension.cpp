// Compiled in the watched process against its PyTorch, behind the text of border.h: hears of every
// operator on every thread.
#include <ATen/record_function.h>
#if PASTA_TORCH_VERSION >= 201
#include <torch/csrc/autograd/function.h>
#endif

#include <atomic>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>

namespace {

const PastaTorch* g_collector = nullptr;

constexpr std::size_t kLongestArguments = 16 << 10;
constexpr std::size_t kLongestList = 30;  // of numbers that PyTorch's own profiler calls a list

// Whether this thread is in a range in which no Python runs, so that operators have no other place.
thread_local bool g_closed = false;
thread_local std::string g_dims, g_types;

bool ends_with(const char* text, std::size_t bytes, const char* ending) {
  const std::size_t count = std::strlen(ending);
  return bytes >= count && std::memcmp(text + bytes - count, ending, count) == 0;
}

// Around a backward operator, and what has to be done for it before and afterwards.
bool is_engine(const char* name) { return std::strncmp(name, "autograd::engine::", 18) == 0; }

// Autograd's numbers of an operator. A range of its engine has none: it gets those of the backward
// operator that it is about to call, so that it hangs below the same forward operator.
void add_sequence(const at::RecordFunction& function, PastaOperator& what) {
  what.thread = function.threadId();
  what.forward_thread = function.forwardThreadId();
  if (function.seqNr() >= 0) what.sequence = static_cast<std::uint64_t>(function.seqNr()) + 1;
#if PASTA_TORCH_VERSION >= 201
  if (!is_engine(what.name)) return;
  const auto node = torch::autograd::get_current_node();
  // What adds gradients up has the largest number there is.
  if (node == nullptr || node->sequence_nr() >= std::uint64_t{1} << 63) return;
  what.sequence = node->sequence_nr() + 1;
  what.forward_thread = node->thread_id();
#endif
}

// Functions that a program writes in Python have plain names, and their backward ends so; those of
// PyTorch have a namespace, and a digit behind.
bool is_closed(const at::RecordFunction& function, const char* name, std::size_t bytes) {
  switch (function.scope()) {
    case at::RecordScope::USER_SCOPE:
      return g_closed;
    case at::RecordScope::BACKWARD_FUNCTION:
      return !ends_with(name, bytes, "Backward");
    case at::RecordScope::TORCHSCRIPT_FUNCTION:
      return true;
    default:
      return g_closed || std::strstr(name, "::") != nullptr;
  }
}

void add_number(std::string& to, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to.append(digits, static_cast<std::size_t>(end - digits));
}

void add_sizes(const at::Tensor& tensor) {
  g_dims += '[';
  if (tensor.defined() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
      !tensor.is_nested()) {
    bool first = true;
    for (const std::int64_t size : tensor.sizes()) {
      if (!first) g_dims += ',';
      first = false;
      add_number(g_dims, size);
    }
  }
  g_dims += ']';
}

// The sizes and types of tensors, and of everything else only what sort of thing it is.
void add_input(const at::IValue& input) {
  if (input.isTensor()) {
    const at::Tensor tensor = input.toTensor();
    add_sizes(tensor);
    if (tensor.defined()) {
      const auto type = tensor.dtype().name();
      g_types.append(type.data(), type.size());
    }
    return;
  }
  if (input.isTensorList()) {
    g_dims += '[';
#if PASTA_TORCH_VERSION >= 201
    bool first = true;
    for (const at::IValue& item : input.toListRef()) {
      if (!first) g_dims += ',';
      first = false;
      add_sizes(item.toTensor());
    }
#endif
    g_dims += ']';
    g_types += "TensorList";
    return;
  }
  g_dims += "[]";
  if (input.isScalar()) {
    g_types += "Scalar";
  } else if (input.isList()) {
    const auto items = input.toListRef();
    if (items.empty() || (items[0].isScalar() && items.size() <= kLongestList)) {
      g_types += "ScalarList";
    }
  }
}

// As in traces of PyTorch's own profiler, without blanks.
void add_arguments(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  g_dims.clear();
  if (inputs.empty()) return;
  g_dims = "{\"Input Dims\":[";
  g_types = "],\"Input type\":[";
  bool first = true;
  for (const at::IValue& input : inputs) {
    if (!first) {
      g_dims += ',';
      g_types += ',';
    }
    first = false;
    g_types += '"';
    add_input(input);
    g_types += '"';
  }
  g_dims += g_types;
  g_dims += "]}";
  if (g_dims.size() > kLongestArguments) g_dims.clear();
}

struct Opened : at::ObserverContext {
  PastaOpened opened;
  bool was_closed;
  bool has_changed;  // of what may end on another thread nothing has
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  try {
    const char* name = function.name();
    PastaOperator what{};
    what.name = name;
    what.name_bytes = std::strlen(name);
    const bool closed = is_closed(function, name, what.name_bytes);
    what.is_user_scope = function.scope() == at::RecordScope::USER_SCOPE;
    what.is_backward =
        function.scope() == at::RecordScope::BACKWARD_FUNCTION || is_engine(what.name);
    what.wants_place = !g_closed && (function.scope() == at::RecordScope::FUNCTION ||
                                     function.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION);
    if (!what.is_user_scope) {
      add_arguments(function);
      what.arguments = g_dims.data();
      what.arguments_bytes = g_dims.size();
      add_sequence(function, what);
    }
    auto context = std::make_unique<Opened>();
    context->opened = g_collector->open(&what);
    context->was_closed = g_closed;
    context->has_changed = closed != g_closed;
    g_closed = closed;
    return context;
  } catch (...) {
    return nullptr;
  }
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  const auto* opened = static_cast<Opened*>(context);
  if (opened->has_changed) g_closed = opened->was_closed;
  g_collector->close(opened->opened);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pasta_torch_start(
    const PastaTorch* collector) {
  if (collector == nullptr || collector->size < sizeof(PastaTorch) || g_collector != nullptr) {
    return 0;
  }
  g_collector = collector;
  at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true));
  return 1;
}
