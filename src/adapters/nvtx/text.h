// From what NVTX is told to what an event says: text in UTF-8 and JSON, in memory of the caller.
// Nothing here knows NVTX's types. Needs no libstdc++: it is for the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::adapters::nvtx {

// UTF-8 of wide characters, of which those that are none become U+FFFD. Ends before the first that
// has no room.
std::size_t to_utf8(const wchar_t* text, char* to, std::size_t room) noexcept;

// Members of a JSON object, one after the other. What has no room is left out whole.
class JsonMembers {
 public:
  JsonMembers(char* memory, std::size_t room) noexcept : memory_(memory), room_(room) {}

  // `value` is JSON already; blanks in it are left out.
  void add(std::string_view key, std::string_view value) noexcept;
  void add_text(std::string_view key, std::string_view text) noexcept;
  void add_number(std::string_view key, std::uint64_t value) noexcept;
  void add_number(std::string_view key, std::int64_t value) noexcept;
  // The fewest digits that give the same value again; as text where JSON has no such number.
  void add_number(std::string_view key, double value) noexcept;
  void add_number(std::string_view key, float value) noexcept;

  // The object; "" without members. Nothing may be added after it.
  [[nodiscard]] std::string_view object() noexcept;

 private:
  bool begin(std::string_view key) noexcept;
  bool put(char c) noexcept;
  bool put(std::string_view text) noexcept;
  // Keeps what was put since `from`, or takes it back.
  void settle(std::size_t from, bool whole) noexcept;

  char* memory_;
  std::size_t room_;
  std::size_t size_ = 1;  // the first is for the brace
};

}  // namespace pasta::adapters::nvtx
