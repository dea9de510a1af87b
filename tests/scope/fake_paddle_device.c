/* Four fake devices for Paddle, "custom_cpu:0" to "custom_cpu:3", that live in the host's memory.
 *
 * For tests only: they make Paddle's custom places real on a machine without any. The header comes
 * with Paddle's wheel and is C++, so g++ compiles this. No kernel is registered; Paddle runs its own
 * for the CPU, and reports the place that was asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "paddle/phi/backends/device_ext.h"

#define DEVICES 4
#define MEMORY ((size_t)1 << 30)

static C_Status nothing(void) { return C_SUCCESS; }
static C_Status on_device(const C_Device device) { return C_SUCCESS; }

static int current = 0;

static C_Status set_device(const C_Device device) {
  current = device->id;
  return C_SUCCESS;
}

static C_Status get_device(const C_Device device) {
  device->id = current;
  return C_SUCCESS;
}

static C_Status get_count(size_t *count) {
  *count = DEVICES;
  return C_SUCCESS;
}

static C_Status get_list(size_t *devices) {
  for (size_t i = 0; i < DEVICES; i++) devices[i] = i;
  return C_SUCCESS;
}

static C_Status copy(const C_Device device, void *to, const void *from, size_t size) {
  memcpy(to, from, size);
  return C_SUCCESS;
}

static C_Status copy_across(const C_Device to_device, const C_Device from_device, void *to,
                            const void *from, size_t size) {
  memcpy(to, from, size);
  return C_SUCCESS;
}

static C_Status copy_on_stream(const C_Device device, C_Stream stream, void *to, const void *from,
                               size_t size) {
  memcpy(to, from, size);
  return C_SUCCESS;
}

static C_Status allocate(const C_Device device, void **memory, size_t size) {
  *memory = malloc(size);
  return *memory ? C_SUCCESS : C_FAILED;
}

static C_Status release(const C_Device device, void *memory, size_t size) {
  free(memory);
  return C_SUCCESS;
}

static C_Status fill(const C_Device device, void *memory, unsigned char value, size_t size) {
  memset(memory, value, size);
  return C_SUCCESS;
}

/* Everything has happened when a call returns, so streams and events are empty. */
static C_Status create_stream(const C_Device device, C_Stream *stream) {
  *stream = NULL;
  return C_SUCCESS;
}

static C_Status on_stream(const C_Device device, C_Stream stream) { return C_SUCCESS; }

static C_Status call_back(const C_Device device, C_Stream stream, C_Callback callback,
                          void *user_data) {
  C_Status status = C_SUCCESS;
  callback(device, stream, user_data, &status);
  return status;
}

static C_Status create_event(const C_Device device, C_Event *event) {
  *event = NULL;
  return C_SUCCESS;
}

static C_Status on_event(const C_Device device, C_Event event) { return C_SUCCESS; }

static C_Status on_both(const C_Device device, C_Stream stream, C_Event event) {
  return C_SUCCESS;
}

static C_Status memory_stats(const C_Device device, size_t *total, size_t *available) {
  *total = *available = MEMORY;
  return C_SUCCESS;
}

static C_Status chunk_size(const C_Device device, size_t *size) {
  *size = 512;
  return C_SUCCESS;
}

static C_Status version(const C_Device device, size_t *number) {
  *number = 1;
  return C_SUCCESS;
}

void InitPlugin(CustomRuntimeParams *params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
  static char device_type[] = "custom_cpu";
  static char sub_type[] = "fake";
  params->device_type = device_type;
  params->sub_device_type = sub_type;
  C_DeviceInterface *calls = params->interface;
  memset((char *)calls + sizeof(calls->size), 0, sizeof(*calls) - sizeof(calls->size));
  calls->initialize = nothing;
  calls->finalize = nothing;
  calls->init_device = on_device;
  calls->set_device = set_device;
  calls->get_device = get_device;
  calls->deinit_device = on_device;
  calls->create_stream = create_stream;
  calls->destroy_stream = on_stream;
  calls->query_stream = on_stream;
  calls->stream_add_callback = call_back;
  calls->create_event = create_event;
  calls->record_event = on_both;
  calls->destroy_event = on_event;
  calls->query_event = on_event;
  calls->synchronize_device = on_device;
  calls->synchronize_stream = on_stream;
  calls->synchronize_event = on_event;
  calls->stream_wait_event = on_both;
  calls->device_memory_allocate = allocate;
  calls->device_memory_deallocate = release;
  calls->device_memory_set = fill;
  calls->host_memory_allocate = allocate;
  calls->host_memory_deallocate = release;
  calls->memory_copy_h2d = copy;
  calls->memory_copy_d2h = copy;
  calls->memory_copy_d2d = copy;
  calls->memory_copy_p2p = copy_across;
  calls->async_memory_copy_h2d = copy_on_stream;
  calls->async_memory_copy_d2h = copy_on_stream;
  calls->async_memory_copy_d2d = copy_on_stream;
  calls->get_device_count = get_count;
  calls->get_device_list = get_list;
  calls->device_memory_stats = memory_stats;
  calls->device_min_chunk_size = chunk_size;
  calls->get_runtime_version = version;
  calls->get_driver_version = version;
}
