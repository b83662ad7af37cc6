// A program with known answers, that knows nothing of us: the public headers of NVTX.
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

nvtxEventAttributes_t attributes(const char* message) {
  nvtxEventAttributes_t a{};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = message;
  return a;
}

void check(bool right) {
  if (!right) _exit(1);
}

void all_forms() {
  check(nvtxRangePushA("outer") == 0);
  check(nvtxRangePushW(L"inner \u00e9\u4e16\U0001f35d") == 1);
  check(nvtxRangePop() == 1);
  nvtxMarkA("mark");
  nvtxMarkW(L"wide mark");
  check(nvtxRangePop() == 0);
  check(nvtxRangePop() < 0);  // none is open
  nvtxEventAttributes_t a = attributes("with attributes");
  a.category = 3;
  a.colorType = NVTX_COLOR_ARGB;
  a.color = 0xff00ff00;
  nvtxNameCategoryA(3, "load \"quoted\"");
  a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  a.payload.ullValue = std::numeric_limits<std::uint64_t>::max();
  nvtxMarkEx(&a);
  a.category = 4;  // has no name
  a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  a.payload.llValue = std::numeric_limits<std::int64_t>::min();
  nvtxMarkEx(&a);
  a.category = 0;
  a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  a.payload.dValue = 0.1;
  nvtxMarkEx(&a);
  a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  a.payload.fValue = 0.1f;
  nvtxMarkEx(&a);
  a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  a.payload.uiValue = 4000000000u;
  nvtxMarkEx(&a);
  a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  a.payload.iValue = -7;
  nvtxMarkEx(&a);
  a.payloadType = NVTX_PAYLOAD_UNKNOWN;
  a.messageType = NVTX_MESSAGE_UNKNOWN;
  nvtxMarkEx(&a);
  nvtxMarkEx(nullptr);
}

void domains() {
  nvtxDomainHandle_t one = nvtxDomainCreateA("one");
  nvtxDomainHandle_t two = nvtxDomainCreateW(L"two");
  nvtxDomainNameCategoryA(one, 1, "in one");
  nvtxDomainNameCategoryW(two, 1, L"in two");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(one, "registered");
  nvtxEventAttributes_t a = attributes("");
  a.category = 1;
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = text;
  check(nvtxDomainRangePushEx(one, &a) == 0);
  a.message.registered = nvtxDomainRegisterStringW(two, L"wide registered");
  check(nvtxDomainRangePushEx(two, &a) == 0);  // levels are of the domain
  check(nvtxDomainRangePop(one) == 0);         // and so is what a pop ends
  nvtxDomainMarkEx(two, &a);
  check(nvtxDomainRangePop(two) == 0);
  nvtxDomainDestroy(two);
  // What is created again is the same.
  nvtxDomainHandle_t again = nvtxDomainCreateA("one");
  a.message.registered = text;
  check(nvtxDomainRangePushEx(again, &a) == 0);
  check(nvtxDomainRangePop(one) == 0);
}

// As XLA does with the code of all that it compiles; more of it than is kept.
void long_names() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("long");
  nvtxEventAttributes_t a = attributes("");
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  const std::string code(1000, 'x');
  a.message.registered = nvtxDomainRegisterStringA(domain, code.c_str());
  nvtxDomainMarkEx(domain, &a);
  nvtxStringHandle_t last = nullptr;
  for (int i = 0; i < 20'000; ++i) {
    last = nvtxDomainRegisterStringA(domain, code.c_str());
    if (i % 1000 == 0) nvtxDomainRegisterStringA(domain, "short");
  }
  a.message.registered = nvtxDomainRegisterStringA(domain, "short");
  nvtxDomainMarkEx(domain, &a);
  a.message.registered = last;
  nvtxDomainMarkEx(domain, &a);
}

void across_threads() {
  std::vector<nvtxRangeId_t> ranges;
  for (int i = 0; i < 300; ++i) ranges.push_back(nvtxRangeStartA("of the process"));
  nvtxEventAttributes_t a = attributes("in a domain");
  a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  a.payload.iValue = 5;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("across");
  const nvtxRangeId_t with_domain = nvtxDomainRangeStartEx(domain, &a);
  const std::string longer(2000, 'x');
  const nvtxRangeId_t with_long_name = nvtxRangeStartA(longer.c_str());
  std::thread([&] {
    for (const nvtxRangeId_t range : ranges) nvtxRangeEnd(range);
    nvtxDomainRangeEnd(domain, with_domain);
    nvtxRangeEnd(with_long_name);
  }).join();
  nvtxRangeEnd(with_domain);  // has ended
}

void names() {
  nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main one");
  nvtxMarkA("of main");
  std::thread([] {
    nvtxMarkA("before it has a name");
    nvtxResourceAttributes_t resource{};
    resource.version = NVTX_VERSION;
    resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
    resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE;
    resource.identifier.ullValue = static_cast<std::uint64_t>(syscall(SYS_gettid));
    resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
    resource.message.ascii = "a worker";
    check(nvtxDomainResourceCreate(nullptr, &resource) != nullptr);
  }).join();
}

void operators() {
  nvtxRangePushA("aten::mul, seq = 41, op_id = 990, sizes = [[2, 3], []]");
  nvtxRangePushA("aten::add, op_id = 991");
  nvtxRangePop();
  nvtxRangePop();
}

// More than there is room for: the levels go on, what has no room is counted.
void deep(int levels) {
  for (int i = 0; i < levels; ++i) check(nvtxRangePushA("deep") == i);
  for (int i = levels; i-- > 0;) check(nvtxRangePop() == i);
  nvtxRangePushA("after");
  nvtxRangePop();
}

void many_threads(int count) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 1000; ++n) {
        const nvtxRangeId_t range = nvtxRangeStartA("started");
        nvtxRangePushA("pushed");
        nvtxRangePop();
        nvtxRangeEnd(range);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void forks() {
  nvtxRangePushA("open at the fork");
  const nvtxRangeId_t range = nvtxRangeStartA("started before");
  if (fork() == 0) {
    nvtxRangePop();
    const nvtxRangeId_t own = nvtxRangeStartA("of the child");
    nvtxRangeEnd(own);
    _exit(0);
  }
  wait(nullptr);
  nvtxRangeEnd(range);
  nvtxRangePop();
}

void killed() {
  nvtxRangePushA("pushed");
  nvtxRangeStartA("started");
  nvtxRangeEnd(nvtxRangeStartA("ended"));
  std::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "all-forms") all_forms();
  if (what == "domains") domains();
  if (what == "long-names") long_names();
  if (what == "across-threads") across_threads();
  if (what == "names") names();
  if (what == "operators") operators();
  if (what == "deep") deep(count);
  if (what == "many-threads") many_threads(count);
  if (what == "forks") forks();
  if (what == "killed") killed();
  if (what == "nothing") return nvtxRangePushA("nobody hears") == NVTX_NO_PUSH_POP_TRACKING ? 0 : 1;
  return 0;
}
