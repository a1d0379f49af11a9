// A packet stage: looks for byte strings in every packet's payload, and drops or counts the packets that hold one.

#include <algorithm>

#include <examples/services.h>

namespace weir::examples {
constexpr DropReason payload_match{"payload_match", "its payload holds a forbidden byte string"};

class PayloadScan final : public PacketStage {
 public:
  PayloadScan(std::vector<std::string> patterns, Counter& found, bool drop)
      : patterns_(std::move(patterns)), found_(found), drop_(drop) {}

  void process(Batch& batch) override {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::string& bytes = buffers_[batch.worker()];
      bytes.clear();
      for (const Packet* segment = &batch[i]; segment != nullptr; segment = segment->next) {
        bytes.append(reinterpret_cast<const char*>(segment->data), segment->segment);
      }
      const auto has = [&](const std::string& p) { return bytes.find(p, batch[i].payload) != std::string::npos; };
      if (std::ranges::any_of(patterns_, has)) {
        found_.add(batch.worker(), batch[i].length);
        if (drop_) {
          batch.drop(i, payload_match);
        }
      }
    }
  }

 private:
  std::vector<std::string> patterns_;
  Counter& found_;
  bool drop_;
  PerWorker<std::string> buffers_;
};

static Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  std::vector<std::string> patterns;
  Errors errors;
  std::ranges::transform(context.list("patterns"), std::back_inserter(patterns),
                         [&](const Config& pattern) { return errors.take(pattern.string("a byte string")); });
  PacketStage& stage = context.node.graph().add<PayloadScan>(
      context.name(), std::move(patterns), context.state().counter("payload_match"), context.text("action") == "drop");
  auto service = std::make_unique<Service>(ServiceStages{stage, stage});
  return errors.empty() ? Result<std::unique_ptr<Service>>(std::move(service))
                        : std::unexpected(errors.result().error());
}

ServiceKind payload_scan() {
  return {"payload_scan",
          "drops or counts packets whose payload holds one of some byte strings",
          {required_setting("patterns", SettingType::list, "byte strings"),
           word_setting("action", "what happens to such packets", {"drop", "count"})},
          build};
}

}  // namespace weir::examples
