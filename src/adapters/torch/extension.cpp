// Compiled in the watched process against its PyTorch, behind the text of border.h: hears of every
// operator on every thread.
#include <ATen/record_function.h>
#if PASTA_TORCH_VERSION >= 201
#include <torch/csrc/autograd/function.h>
#endif

#include <pthread.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace {

const PastaTorch* g_collector = nullptr;

constexpr std::size_t kLongestArguments = 16 << 10;
constexpr std::size_t kLongestList = 30;  // of numbers that PyTorch's own profiler calls a list

// As if it were on the stack: `end` is told of it, and ends it soon.
struct Opened : at::ObserverContext {
  PastaOpened opened;
  bool was_closed;
  bool has_changed;  // of what may end on another thread nothing has
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory);
};

// What a thread has of its own.
struct State {
  // Whether it is in a range in which no Python runs, so that operators have no other place.
  bool closed = false;
  struct Free {
    Free* next;
  };
  Free* free = nullptr;  // room of an Opened each
  std::string dims, types;
};

// The fast way to it, for which a library that is loaded late has room for a few bytes only; the
// key is there to end it with its thread.
__attribute__((tls_model("initial-exec"))) thread_local State* g_state = nullptr;
pthread_key_t g_key;

void end_state(void* state) {
  g_state = nullptr;
  auto* ended = static_cast<State*>(state);
  while (ended->free != nullptr) std::free(std::exchange(ended->free, ended->free->next));
  delete ended;
}

State& state() {
  if (g_state == nullptr) {
    g_state = new State;
    pthread_setspecific(g_key, g_state);
  }
  return *g_state;
}

void* Opened::operator new(std::size_t bytes) {
  State& mine = state();
  if (mine.free != nullptr) return std::exchange(mine.free, mine.free->next);
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void Opened::operator delete(void* memory) {
  State& mine = state();
  mine.free = new (memory) State::Free{mine.free};
}

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
      return state().closed;
    case at::RecordScope::BACKWARD_FUNCTION:
      return !ends_with(name, bytes, "Backward");
    case at::RecordScope::TORCHSCRIPT_FUNCTION:
      return true;
    default:
      return state().closed || std::strstr(name, "::") != nullptr;
  }
}

void add_number(std::string& to, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to.append(digits, static_cast<std::size_t>(end - digits));
}

bool has_sizes(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
         !tensor.is_nested();
}

// What an input is as far as it is told: the sizes and types of tensors, and of everything else
// only what sort of thing it is.
enum class Sort : std::uint8_t { kOther, kTensor, kTensors, kScalar, kScalars };

Sort sort_of(const at::IValue& input) {
  if (input.isTensor()) return Sort::kTensor;
  if (input.isTensorList()) return Sort::kTensors;
  if (input.isScalar()) return Sort::kScalar;
  if (!input.isList()) return Sort::kOther;
  const auto items = input.toListRef();
  const bool is_short = items.empty() || (items[0].isScalar() && items.size() <= kLongestList);
  return is_short ? Sort::kScalars : Sort::kOther;
}

// A number of what add_arguments() writes: equal for equal text, and else most probably not.
class Key {
 public:
  void add(std::uint64_t value) {
    key_ = (key_ ^ value) * 0x9fb21c651e98df25u;
    key_ ^= key_ >> 29;
  }
  void add(const at::Tensor& tensor) {
    if (!has_sizes(tensor)) return add(tensor.defined() ? 1 : 2);
    const auto sizes = tensor.sizes();
    add(sizes.size() + 3);
    for (const std::int64_t size : sizes) add(static_cast<std::uint64_t>(size));
  }
  void add(const at::IValue& input) {
    const Sort sort = sort_of(input);
    add(static_cast<std::uint64_t>(sort));
    if (sort == Sort::kTensor) {
      const at::Tensor& tensor = input.toTensor();
      add(tensor);
      if (tensor.defined()) add(static_cast<std::uint64_t>(tensor.scalar_type()));
    }
#if PASTA_TORCH_VERSION >= 201
    if (sort == Sort::kTensors) {
      const auto items = input.toListRef();
      add(items.size());
      for (const at::IValue& item : items) add(item.toTensor());
    }
#endif
  }
  // Never 0.
  std::uint64_t value() const { return key_ == 0 ? 1 : key_; }

 private:
  std::uint64_t key_ = 0x2545f4914f6cdd1du;
};

void add_sizes(std::string& to, const at::Tensor& tensor) {
  to += '[';
  if (has_sizes(tensor)) {
    bool first = true;
    for (const std::int64_t size : tensor.sizes()) {
      if (!first) to += ',';
      first = false;
      add_number(to, size);
    }
  }
  to += ']';
}

void add_input(State& mine, const at::IValue& input) {
  switch (sort_of(input)) {
    case Sort::kTensor: {
      const at::Tensor& tensor = input.toTensor();
      add_sizes(mine.dims, tensor);
      if (tensor.defined()) {
        const auto type = tensor.dtype().name();
        mine.types.append(type.data(), type.size());
      }
      return;
    }
    case Sort::kTensors: {
      mine.dims += '[';
#if PASTA_TORCH_VERSION >= 201
      bool first = true;
      for (const at::IValue& item : input.toListRef()) {
        if (!first) mine.dims += ',';
        first = false;
        add_sizes(mine.dims, item.toTensor());
      }
#endif
      mine.dims += ']';
      mine.types += "TensorList";
      return;
    }
    case Sort::kScalar:
      mine.types += "Scalar";
      break;
    case Sort::kScalars:
      mine.types += "ScalarList";
      break;
    case Sort::kOther:
      break;
  }
  mine.dims += "[]";
}

// As in traces of PyTorch's own profiler, without blanks.
void add_arguments(PastaOperator* what) {
  State& mine = state();
  mine.dims = "{\"Input Dims\":[";
  mine.types = "],\"Input type\":[";
  bool first = true;
  for (const at::IValue& input : static_cast<const at::RecordFunction*>(what->function)->inputs()) {
    if (!first) {
      mine.dims += ',';
      mine.types += ',';
    }
    first = false;
    mine.types += '"';
    add_input(mine, input);
    mine.types += '"';
  }
  mine.dims += mine.types;
  mine.dims += "]}";
  if (mine.dims.size() > kLongestArguments) mine.dims.clear();
  what->arguments = mine.dims.data();
  what->arguments_bytes = mine.dims.size();
}

void add_key(const at::RecordFunction& function, PastaOperator& what) {
  const auto inputs = function.inputs();
  if (inputs.empty()) return;
  Key key;
  key.add(inputs.size());
  for (const at::IValue& input : inputs) key.add(input);
  what.arguments_key = key.value();
  what.describe = add_arguments;
  what.function = &function;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  try {
    State& mine = state();
    const char* name = function.name();
    PastaOperator what{};
    what.name = name;
    what.name_bytes = std::strlen(name);
    const bool closed = is_closed(function, name, what.name_bytes);
    what.is_user_scope = function.scope() == at::RecordScope::USER_SCOPE;
    what.is_backward =
        function.scope() == at::RecordScope::BACKWARD_FUNCTION || is_engine(what.name);
    what.wants_place = !mine.closed && (function.scope() == at::RecordScope::FUNCTION ||
                                        function.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION);
    if (!what.is_user_scope) {
      add_key(function, what);
      add_sequence(function, what);
    }
    auto context = std::make_unique<Opened>();
    context->opened = g_collector->open(&what);
    context->was_closed = mine.closed;
    context->has_changed = closed != mine.closed;
    mine.closed = closed;
    return context;
  } catch (...) {
    return nullptr;
  }
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  const auto* opened = static_cast<Opened*>(context);
  if (opened->has_changed) state().closed = opened->was_closed;
  g_collector->close(opened->opened);
}

at::CallbackHandle g_callback = 0;

// While nothing is called, operators take as long as if nobody watched.
void call(int on) noexcept {
  try {
    if (on != 0) {
      at::reenableCallback(g_callback);
    } else {
      at::disableCallback(g_callback);
    }
  } catch (...) {
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pasta_torch_start(
    const PastaTorch* collector) {
  if (collector == nullptr || collector->size < sizeof(PastaTorch) || g_collector != nullptr) {
    return 0;
  }
  if (pthread_key_create(&g_key, end_state) != 0) return 0;
  g_collector = collector;
  // PyTorch lists what is called for each sort anew with every backward operator, so those are left
  // out that are no operators' or users': what says which code a smaller PyTorch needs, and what
  // interpreters for servers and small devices say of themselves.
  g_callback = at::addGlobalCallback(
      at::RecordFunctionCallback(begin, end)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                   at::RecordScope::TORCHSCRIPT_FUNCTION, at::RecordScope::CUSTOM_CLASS,
                   at::RecordScope::USER_SCOPE}));
  collector->started(call);
  return 1;
}
