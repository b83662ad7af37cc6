/* Loads what watches CUDA as the driver would, and launches kernels on a CUPTI without a GPU:
   program LAST, which is profiler, loaded, other, exit, _exit, kill, or one of the others below. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pasta/pasta.h"

typedef int (*initialize_function)(void);
typedef int (*register_function)(void*, void*);
typedef void (*launch_function)(const char*, unsigned);
typedef void (*launch_node_function)(const char*, unsigned, uint64_t);
typedef void (*node_function)(uint64_t);
typedef void (*copy_function)(uint64_t, uint64_t);
typedef void (*number_function)(unsigned);
typedef int (*subscribe_function)(void**, void*, void*);
typedef int (*enable_function)(int);

/* Which of the CUPTIs here the driver serves. */
__attribute__((visibility("default"))) void* fake_driver_serves;

static void* cupti;
static launch_function launch;
static unsigned thread;

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) exit(3);
  return found;
}

/* A graph whose nodes were captured inside of ranges, and launched in another. */
static void run_graph(void) {
  node_function capture;
  copy_function instantiate;
  launch_node_function launch_node;
  *(void**)&capture = find(cupti, "capture");
  *(void**)&instantiate = find(cupti, "instantiate");
  *(void**)&launch_node = find(cupti, "launch_node");
  const uint64_t whole = pasta_begin("capture");
  const uint64_t first = pasta_begin("first");
  capture(0x100000001u);
  capture(0x100000002u);
  pasta_end(first);
  const uint64_t second = pasta_begin("second");
  capture(0x100000003u);
  pasta_end(second);
  pasta_end(whole);
  capture(0x100000004u);
  for (uint64_t node = 1; node <= 4; ++node) instantiate(0x200000000u + node, 0x100000000u + node);
  const uint64_t replay = pasta_begin("replay");
  for (uint64_t node = 1; node <= 4; ++node) launch_node("node", thread, 0x200000000u + node);
  pasta_end(replay);
}

/* Launches in steps: told of by pasta_step(), by ranges with numbers, by ranges without, or by what
   PyTorch says of its optimizers. */
static void run_steps(const char* how) {
  static const char* const names[] = {"step 0", "step 1", "step 2", "step 3", "step 4", "step 5"};
  for (int i = 0; i < 6; ++i) {
    uint64_t range = 0;
    if (strcmp(how, "steps") == 0) pasta_step();
    if (strcmp(how, "numbers") == 0) range = pasta_begin(names[i]);
    if (strcmp(how, "names") == 0) range = pasta_begin("train_step");
    launch("relu", thread);
    pasta_end(range);
    if (strcmp(how, "optimizers") == 0) pasta_end(pasta_begin("Optimizer.step#SGD.step"));
  }
  if (strcmp(how, "steps") == 0) pasta_step();
}

/* As a profiler does that loads CUPTI by itself, or one of its own. */
static int profile(void* library) {
  subscribe_function subscribe;
  enable_function enable;
  register_function take;
  void* subscriber = NULL;
  if (library == NULL) return 10;
  *(void**)&subscribe = find(library, "cuptiSubscribe");
  if (subscribe(&subscriber, find(library, "cuptiGetVersion"), NULL) != 0) return 6;
  *(void**)&enable = find(library, "cuptiActivityEnable");
  if (enable(3) != 0) return 7;
  *(void**)&take = find(library, "cuptiActivityRegisterCallbacks");
  if (take(NULL, NULL) != 0) return 6;
  launch("after", thread);
  /* All else is looked up as ever, and for whoever asks. */
  if (dlsym(RTLD_NEXT, "pasta_collector_v1") == NULL) return 8;
  return 0;
}

/* Only what is between start and stop of the profiler, twice. */
static void run_profiled(void) {
  number_function profiler, ask;
  launch_function launch_by_driver;
  *(void**)&launch_by_driver = find(cupti, "launch_by_driver");
  *(void**)&profiler = find(cupti, "profiler");
  *(void**)&ask = find(cupti, "ask");
  for (int i = 0; i < 2; ++i) {
    launch("outside", thread);
    launch_by_driver("outside", thread);
    profiler(1);
    launch("inside", thread);
    launch_by_driver("inside", thread);
    ask(thread);
    profiler(0);
  }
  launch("outside", thread);
  launch_by_driver("outside", thread);
}

/* As after four thousand million calls. */
static void run_long(void) {
  number_function set_correlation;
  *(void**)&set_correlation = find(cupti, "set_correlation");
  for (unsigned turn = 0; turn < 2; ++turn) {
    set_correlation(0x7fffffffu);
    launch("half", thread);
    set_correlation(0xfffffffeu);
    for (int i = 0; i < 4; ++i) launch("turn", thread);
  }
}

static void run_external(void) {
  void (*external_id)(uint64_t);
  *(void**)&external_id = find(cupti, "external_id");
  external_id(17);
  launch("relu", thread);
  external_id(18);
  external_id(19);
}

static void run_fills(void) {
  number_function fill;
  *(void**)&fill = find(cupti, "fill");
  launch("relu", thread);
  fill(thread);
}
/* A stream and an event that one waits for by the runtime, which has the driver wait; the driver's
   own wait for all. */
static void run_waits(void) {
  void (*wait_in)(int, uint32_t, uint32_t, uintptr_t, uintptr_t, uint32_t);
  *(void**)&wait_in = find(cupti, "wait_in");
  launch("relu", thread);
  wait_in(2, 131, 126, 7, 0, thread);
  wait_in(2, 147, 0, 7, 0xe0, thread);
  wait_in(1, 17, 0, 0, 0, thread);
}

/* Collection stops while the thread waits by the runtime, and goes on; then it waits by the driver.
 */
static void run_interrupted(void) {
  void (*wait_in)(int, uint32_t, uint32_t, uintptr_t, uintptr_t, uint32_t);
  void (*begin_wait)(void);
  *(void**)&wait_in = find(cupti, "wait_in");
  *(void**)&begin_wait = find(cupti, "begin_wait");
  begin_wait();
  pasta_stop();
  pasta_start();
  wait_in(1, 17, 0, 0, 0, thread);
}
/* One thread starts collection while another stops it, again and again. Whichever comes last, a
   mark is recorded if and only if a launch is. */
static pthread_barrier_t both;
enum { kRounds = 5000 };
static void* stop_again(void* data) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_barrier_wait(&both);
    pasta_stop();
    pthread_barrier_wait(&both);
  }
  return data;
}
static void run_race(void) {
  pthread_t other;
  pthread_barrier_init(&both, NULL, 2);
  pthread_create(&other, NULL, stop_again, NULL);
  for (int i = 0; i < kRounds; ++i) {
    pasta_stop();
    pthread_barrier_wait(&both);
    pasta_start();
    pthread_barrier_wait(&both);
    pasta_mark("after");
    launch("after", thread);
  }
  pthread_join(other, NULL);
}
static void run_failing(void) {
  void (*fail)(void);
  number_function launch_unfinished;
  *(void**)&fail = find(cupti, "fail");
  *(void**)&launch_unfinished = find(cupti, "launch_unfinished");
  launch("before", thread);
  launch_unfinished(thread);
  fail();
  launch("after", thread);
}

static void run_asks(void) {
  number_function ask;
  *(void**)&ask = find(cupti, "ask");
  ask(thread);
  launch("relu", thread);
}

/* Resident memory, in KiB. */
static long resident(void) {
  char text[4096];
  const int file = open("/proc/self/status", O_RDONLY);
  const long size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* at = strstr(text, "VmRSS:");
  return at == NULL ? -1 : atol(at + 6);
}

/* So many launches of the kernels of a step of training, at most `a_ms` in a millisecond. Prints
   the resident memory at first, and after each tenth of them, and then the time. */
static void run_storm(long count, long a_ms) {
  /* As long as those of frameworks, which name all their types. */
  static const char kernel[] =
      "elementwise_kernel_over_the_elements_of_a_tensor_iterator_of_one_output_and_two_inputs_"
      "with_a_binary_functor_of_single_precision_and_an_index_of_thirty_two_bits_of_layer_";
  static char names[100][256];
  for (int i = 0; i < 100; ++i) {
    snprintf(names[i], sizeof names[i], "_Z%zu%s%02dPfi", sizeof kernel + 1, kernel, i);
  }
  struct timespec now;
  printf("%ld", resident());
  for (long i = 0; i < count;) {
    for (long k = 0; k < a_ms && i < count; ++k, ++i) {
      launch(names[i % 742 % 100], thread);
      if (i % (count / 10) == count / 10 - 1) printf(" %ld", resident());
    }
    now.tv_sec = 0;
    now.tv_nsec = 500000;
    nanosleep(&now, NULL);
  }
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("\n%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
  fflush(stdout);
}

/* What training of a residual network launches: forward and backward through 16 blocks, and an
   optimizer; no marks. The first step also sets up the optimizer. */
static void run_training(int steps) {
  number_function copy_from_host;
  *(void**)&copy_from_host = find(cupti, "copy_from_host");
  static const int blocks[] = {3, 4, 6, 3};
  static const char* const forward[] = {"conv1x1", "bn",   "relu",    "conv3x3",
                                        "bn",      "relu", "conv1x1", "bn"};
  static const char* const backward[] = {"bn_backward",   "conv1x1_dgrad", "conv1x1_wgrad",
                                         "relu_backward", "bn_backward",   "conv3x3_dgrad",
                                         "conv3x3_wgrad", "relu_backward", "bn_backward",
                                         "conv1x1_dgrad", "conv1x1_wgrad"};
  for (int i = 0; i < 161; ++i) launch("init_uniform", thread);
  for (int step = 0; step < steps; ++step) {
    copy_from_host(thread);
    launch("conv7x7", thread);
    launch("max_pool", thread);
    for (int stage = 0; stage < 4; ++stage) {
      for (int block = 0; block < blocks[stage]; ++block) {
        for (int i = 0; i < 8; ++i) launch(forward[i], thread);
        if (block == 0) launch("conv_down", thread);
        launch("add_relu", thread);
      }
    }
    launch("avg_pool", thread);
    launch("gemm", thread);
    launch("nll_loss", thread);
    launch("nll_loss_backward", thread);
    for (int stage = 3; stage >= 0; --stage) {
      for (int block = blocks[stage] - 1; block >= 0; --block) {
        launch("add_relu_backward", thread);
        for (int i = 0; i < 11; ++i) launch(backward[i], thread);
        if (block == 0) launch("conv_down_backward", thread);
      }
    }
    launch("max_pool_backward", thread);
    if (step == 0) {
      for (int i = 0; i < 161; ++i) launch("fill", thread);
    }
    for (int i = 0; i < 24; ++i) launch("adamw", thread);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  initialize_function initialize;
  /* What the program has loaded before it calls CUDA. */
  const char* loads = getenv("FAKE_LOADS");
  if (loads != NULL && dlopen(loads, RTLD_NOW) == NULL) return 9;
  const char* library = getenv("CUDA_INJECTION64_PATH");
  if (library == NULL) return 4;
  void* collector = dlopen(library, RTLD_NOW);
  if (collector == NULL) return 3;
  *(void**)&initialize = find(collector, "InitializeInjection");
  if (strcmp(argv[1], "early") == 0) {
    register_function take;
    *(void**)&take = find(dlopen("libcupti.so.13", RTLD_NOW), "cuptiActivityRegisterCallbacks");
    if (take(NULL, NULL) != 0) return 6;
  }
  if (initialize() != 1) return 5;
  cupti = dlopen("libcupti.so.13", RTLD_NOW);
  if (cupti == NULL) return 5;
  *(void**)&launch = find(cupti, "launch");
  thread = (unsigned)syscall(SYS_gettid);
  if (strncmp(argv[1], "by-", 3) == 0) return run_steps(argv[1] + 3), 0;
  if (strcmp(argv[1], "graph") == 0) return run_graph(), 0;
  if (strcmp(argv[1], "profiled") == 0) return run_profiled(), 0;
  if (strcmp(argv[1], "long") == 0) return run_long(), 0;
  if (strcmp(argv[1], "storm") == 0 && argc == 4) return run_storm(atol(argv[2]), atol(argv[3])), 0;
  if (strcmp(argv[1], "training") == 0 && argc == 3) return run_training(atoi(argv[2])), 0;
  if (strcmp(argv[1], "external") == 0) return run_external(), 0;
  if (strcmp(argv[1], "fills") == 0) return run_fills(), 0;
  if (strcmp(argv[1], "waits") == 0) return run_waits(), 0;
  if (strcmp(argv[1], "asks") == 0) return run_asks(), 0;
  if (strcmp(argv[1], "interrupted") == 0) return run_interrupted(), 0;
  if (strcmp(argv[1], "race") == 0) return run_race(), 0;
  if (strcmp(argv[1], "failing") == 0) return run_failing(), 0;
  if (strcmp(argv[1], "exec") == 0) {
    launch("before exec", thread);
    char* again[] = {argv[0], "exit", NULL};
    execv("/proc/self/exe", again);
  }
  if (strcmp(argv[1], "quick_exit") == 0) {
    launch("before quick_exit", thread);
    quick_exit(7);
  }
  const uint64_t step = pasta_begin("step");
  const uint64_t forward = pasta_begin("forward");
  launch("_Z4gemmPfi", thread);
  pasta_end(forward);
  launch("relu", thread);
  pasta_end(step);
  launch("relu", thread);
  if (strcmp(argv[1], "profiler") == 0) {
    register_function take;
    *(void**)&take = find(RTLD_DEFAULT, "cuptiActivityRegisterCallbacks");
    if (take(NULL, NULL) != 0) return 6;
    launch("after", thread);
  }
  if (strcmp(argv[1], "loaded") == 0) return profile(cupti);
  if (strcmp(argv[1], "other") == 0) return profile(dlopen(getenv("FAKE_OTHER"), RTLD_NOW));
  if (strcmp(argv[1], "_exit") == 0) _exit(7);
  if (strcmp(argv[1], "kill") == 0) {
    number_function launch_unfinished;
    *(void**)&launch_unfinished = find(cupti, "launch_unfinished");
    for (int i = 0; i < 2; ++i) launch_unfinished(thread);
    raise(SIGKILL);
  }
  return 0;
}
