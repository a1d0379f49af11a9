#pragma once
// Changes to a frame's bytes, each with what follows from it: checksums, and where the offload state points.

#include <weir/engine/reference/headers.h>
#include <weir/flow/field.h>
#include <weir/packet/transport.h>

namespace weir::reference {

/// Sets a settable field that the frame has. SCTP ports: not of a fragment, whose CRC covers what is not there.
void set(Frame& frame, const Headers& headers, FieldId field, const FieldValue& value);

/// The frame is IP.
void set_ttl(Frame& frame, const Headers& headers, std::uint8_t ttl);

/// A tag of type 0x8100 in front of those there are.
void push_vlan(Frame& frame, std::uint16_t control);
void pop_vlan(Frame& frame);

/// The packet that an ICMP error quotes.
void translate_quoted(Frame& frame, const Headers& headers, const QuotedTranslation& translation);

/// Computes the checksum that was left to the device.
void finish_checksum(Frame& frame);

}  // namespace weir::reference
