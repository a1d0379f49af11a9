// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a port attaches to its interface: every frame goes to the AF_XDP socket of the queue it came in by.

// clang-format off: the helpers need the types
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
// clang-format on

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, 1);  // as many as there are queues; set by the loader
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

// Frames of queues that have no socket: queues that were added after the port was opened.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} unclaimed SEC(".maps");

static __always_inline int to_socket(struct xdp_md* frame) {
  // The port owns the interface: what it cannot have, the kernel's stack does not get either.
  const int verdict = (int)bpf_redirect_map(&sockets, frame->rx_queue_index, XDP_DROP);
  if (verdict != XDP_REDIRECT) {
    const __u32 key = 0;
    __u64* count = bpf_map_lookup_elem(&unclaimed, &key);
    if (count) {
      ++*count;
    }
  }
  return verdict;
}

// Takes frames of several buffers, too.
SEC("xdp.frags")
int weir_port_frags(struct xdp_md* frame) { return to_socket(frame); }

// For kernels and drivers that have none.
SEC("xdp")
int weir_port(struct xdp_md* frame) { return to_socket(frame); }

char program_license[] SEC("license") = "Dual BSD/GPL";
