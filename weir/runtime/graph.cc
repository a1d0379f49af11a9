#include <weir/runtime/graph.h>

#include <algorithm>
#include <functional>

#include <fmt/ranges.h>

namespace weir {

void Graph::insert(std::string name, std::unique_ptr<FlowStage> stage) {
  nodes_.push_back({std::move(name), std::move(stage), nullptr});
}

void Graph::insert(std::string name, std::unique_ptr<PacketStage> stage) {
  nodes_.push_back({std::move(name), nullptr, std::move(stage)});
}

std::size_t Graph::find(const void* stage) const {
  return static_cast<std::size_t>(std::ranges::find(nodes_, stage, &Node::address) - nodes_.begin());
}

namespace {

// The first cycle found, as "a -> b -> a"; empty if there is none.
std::string find_cycle(const Pipeline& pipeline) {
  enum class Seen { no, open, done };
  std::vector<Seen> seen(pipeline.stages.size(), Seen::no);
  std::vector<std::string> path;
  std::string cycle;
  const std::function<bool(std::size_t)> visit = [&](std::size_t at) {
    seen[at] = Seen::open;
    path.push_back(pipeline.stages[at].name);
    for (const std::uint8_t next : pipeline.stages[at].outputs) {
      if (next == Pipeline::nowhere || seen[next] == Seen::done) {
        continue;
      }
      if (seen[next] == Seen::open) {
        const auto from = std::ranges::find(path, pipeline.stages[next].name);
        cycle = fmt::format("{} -> {}", fmt::join(from, path.end(), " -> "), pipeline.stages[next].name);
        return true;
      }
      if (visit(next)) {
        return true;
      }
    }
    seen[at] = Seen::done;
    path.pop_back();
    return false;
  };
  for (std::size_t i = 0; i < pipeline.stages.size() && cycle.empty(); ++i) {
    if (seen[i] == Seen::no) {
      visit(i);
    }
  }
  return cycle;
}

}  // namespace

Result<Pipeline> Graph::compile(std::span<const std::string> ports) const {
  std::vector<std::string> wrong;
  Pipeline pipeline;
  if (nodes_.size() > Pipeline::stage_limit) {
    wrong.push_back(fmt::format("{} stages; the limit is {}", nodes_.size(), Pipeline::stage_limit));
    return error("the graph has {}", wrong.front());
  }
  for (const Node& node : nodes_) {
    if (std::ranges::find(pipeline.stages, node.name, &Pipeline::Node::name) != pipeline.stages.end()) {
      wrong.push_back(fmt::format("two stages are named '{}'; rename one", node.name));
    }
    Pipeline::Node compiled{node.name, node.flow.get(), node.packet.get(), {}};
    compiled.outputs.assign(node.packet ? node.packet->outputs() : 1, Pipeline::nowhere);
    pipeline.stages.push_back(std::move(compiled));
  }
  for (const Edge& edge : edges_) {
    const std::size_t from = find(edge.from);
    const std::size_t to = find(edge.to);
    if (from == nodes_.size() || to == nodes_.size()) {
      wrong.push_back(fmt::format("a connection {} a stage that was not added to this graph",
                                  from == nodes_.size() ? "from" : "to"));
      continue;
    }
    auto& outputs = pipeline.stages[from].outputs;
    if (edge.output >= outputs.size()) {
      wrong.push_back(
          fmt::format("stage '{}' has no output {}; it has {}", nodes_[from].name, edge.output, outputs.size()));
    } else if (outputs[edge.output] != Pipeline::nowhere && outputs[edge.output] != to) {
      wrong.push_back(fmt::format("output {} of stage '{}' is connected twice: to '{}' and to '{}'", edge.output,
                                  nodes_[from].name, nodes_[outputs[edge.output]].name, nodes_[to].name));
    } else {
      outputs[edge.output] = static_cast<std::uint8_t>(to);
    }
  }
  for (const Pipeline::Node& node : pipeline.stages) {
    for (std::size_t i = 0; node.packet != nullptr && i < node.outputs.size(); ++i) {
      if (node.outputs[i] == Pipeline::nowhere) {
        wrong.push_back(fmt::format("output {} of packet stage '{}' is not connected", i, node.name));
      }
    }
  }
  pipeline.delivers = delivers_;
  pipeline.entry.assign(max_ports, Pipeline::nowhere);
  for (const PortEdge& edge : port_edges_) {
    const std::size_t to = find(edge.to);
    if (edge.port.number >= ports.size()) {
      wrong.push_back(fmt::format("a connection from port number {}, which the node does not have", edge.port.number));
    } else if (to == nodes_.size()) {
      wrong.push_back(
          fmt::format("port '{}' is connected to a stage that was not added to this graph", ports[edge.port.number]));
    } else if (pipeline.entry[edge.port.number] != Pipeline::nowhere && pipeline.entry[edge.port.number] != to) {
      wrong.push_back(fmt::format("port '{}' is connected twice: to '{}' and to '{}'", ports[edge.port.number],
                                  nodes_[pipeline.entry[edge.port.number]].name, nodes_[to].name));
    } else {
      pipeline.entry[edge.port.number] = static_cast<std::uint8_t>(to);
    }
  }
  if (const std::size_t to = find(default_entry_); default_entry_ != nullptr && to == nodes_.size()) {
    wrong.push_back("the ports are connected to a stage that was not added to this graph");
  } else if (default_entry_ != nullptr) {
    std::ranges::replace(pipeline.entry, Pipeline::nowhere, static_cast<std::uint8_t>(to));
  }
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (pipeline.entry[port] == Pipeline::nowhere && !ports[port].empty()) {
      wrong.push_back(fmt::format("port '{}' is not connected to a stage", ports[port]));
    }
  }
  if (std::string cycle = find_cycle(pipeline); !cycle.empty()) {
    wrong.push_back(fmt::format("packets would go round in circles: {}", cycle));
  }
  if (!wrong.empty()) {
    return error("the graph cannot run: {}", fmt::join(wrong, "; "));
  }
  return pipeline;
}

}  // namespace weir
