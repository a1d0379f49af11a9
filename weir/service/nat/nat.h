#pragma once
// The service `nat`.

#include <weir/service/service.h>

namespace weir {

/// Network address translation by connection: hosts behind one address (masquerading, RFC 3022, RFC 4787, RFC 5382),
/// and ports of that address that lead to one of them (forwarding). Answers, and ICMP errors about translated packets,
/// are translated back. Passes everything on.
ServiceKind nat();

}  // namespace weir
