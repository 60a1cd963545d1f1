/* A made-up libnvidia-ml.so.1 with two GPUs: no values here were recorded from a real one.
   GPU 0 is well but for seven memory errors. GPU 1 is hot, has 8 of 16 lanes and one of
   two NVLinks, counts no memory errors, could not replace a row, is split by MIG into two
   of at most seven instances, and had the errors Xid 31 and 74. GPU 2 has fallen off the
   bus. */

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define TIMEOUT 10
#define GPU_IS_LOST 15

static int gpus[2] = {0, 1};

int nvmlInit_v2(void) { return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (index > 1) return GPU_IS_LOST;
  *device = &gpus[index];
  return SUCCESS;
}

static int of(void *device) { return *(int *)device; }

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
  if (type != 1) return NOT_SUPPORTED;
  *mhz = of(device) ? 1200 : 1980;
  return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz) {
  *mhz = 1980;
  return type == 1 ? SUCCESS : NOT_SUPPORTED;
}

/* The name of older drivers alone. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  *reasons = of(device) ? 0x40 | 0x20 | 0x04 : 0x01;
  return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count) {
  *count = 7;
  return of(device) || type != 1 || counter != 0 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width) {
  *width = of(device) ? 8 : 16;
  return SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *width) { *width = 16; return SUCCESS; }

/* GPU 0 has two NVLinks, both up; one of the two of GPU 1 is down. */
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *state) {
  if (link > 1) return NOT_SUPPORTED;
  *state = !(of(device) && link);
  return SUCCESS;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failed) {
  *correctable = *uncorrectable = 3;
  *pending = 0;
  *failed = 1;
  return of(device) ? SUCCESS : NOT_SUPPORTED;
}

static char instances[2][16] = {"MIG-0a", "MIG-3b"};

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
  for (int n = 0; n < 2; n++) {
    if (device == instances[n] && length >= 96) {
      for (unsigned i = 0; i < 16; i++) uuid[i] = instances[n][i];
      return SUCCESS;
    }
  }
  if (of(device) || length < 96) return NOT_SUPPORTED;
  for (unsigned n = 0; n < 8; n++) uuid[n] = "GPU-1a2b"[n];
  uuid[8] = 0;
  return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  if (device == instances[0] || device == instances[1]) {
    const char *profile = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
    while ((*name++ = *profile++)) {}
    return SUCCESS;
  }
  const char *text = of(device) ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-40GB";
  if (length < 96) return NOT_SUPPORTED;
  while ((*name++ = *text++)) {}
  return SUCCESS;
}

int nvmlDeviceGetMigMode(void *device, unsigned *present, unsigned *pending) {
  *present = *pending = of(device);
  return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = 7; return SUCCESS; }

/* Instances 0 and 3. */
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **instance) {
  *instance = instances[index == 3];
  return index % 3 || index > 3 ? NOT_SUPPORTED : SUCCESS;
}

struct event {
  void *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

static int watched[2], set, next_event;

int nvmlEventSetCreate(void **events) { *events = &set; return SUCCESS; }

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *events) {
  watched[of(device)] = types == 8 && events == &set;
  return SUCCESS;
}

/* The driver keeps two errors of GPU 1, the second one twice; then there is none. */
int nvmlEventSetWait_v2(void *events, struct event *event, unsigned timeout_ms) {
  const int errors[3] = {31, 74, 74};
  if (events != &set || !watched[1] || timeout_ms || next_event > 2) return TIMEOUT;
  *event = (struct event){&gpus[1], 8, errors[next_event++], 0, 0};
  return SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *generation) {
  *generation = 5;
  return SUCCESS;
}
