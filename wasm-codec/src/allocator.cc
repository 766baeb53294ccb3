/**
 * malloc, calloc and free for the module, in place of the C library's, which would be a quarter of it. Free blocks are
 * one list in the order of their addresses, neighbours merged; the first that is large enough is taken. The codec
 * allocates a few large blocks an object and none in between, so the list stays short.
 */
#include <cstddef>
#include <cstdint>
#include <cstring>

/** The linker's: where data and stack end. */
extern "C" uint8_t __heap_base;

namespace {

constexpr size_t kPageBytes = 65536;
constexpr size_t kAlignment = 16;
/** No block can be larger; sums of sizes below it do not wrap. */
constexpr size_t kBytesMax = SIZE_MAX / 2;

struct alignas(kAlignment) Block {
  /** With this header. */
  size_t bytes;
  /** The next free block; means nothing while this one is in use. */
  Block* next;
};

/** The list starts with a block of no bytes, below all others. */
Block firstFree = {0, nullptr};
bool isInitialized = false;

uintptr_t addressOf(const Block* block) { return reinterpret_cast<uintptr_t>(block); }
uintptr_t endOf(const Block* block) { return addressOf(block) + block->bytes; }
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void mergeWithNext(Block* block) {
  if (block->bytes == 0 || block->next == nullptr || endOf(block) != addressOf(block->next)) return;
  block->bytes += block->next->bytes;
  block->next = block->next->next;
}

void insert(Block* block) {
  Block* before = &firstFree;
  while (before->next != nullptr && addressOf(before->next) < addressOf(block)) before = before->next;
  block->next = before->next;
  before->next = block;
  mergeWithNext(block);
  mergeWithNext(before);
}

void insert(uintptr_t begin, size_t bytes) {
  Block* const block = reinterpret_cast<Block*>(begin);
  block->bytes = bytes;
  insert(block);
}

/** What the memory has beyond the linker's data when the module starts. */
void initialize() {
  isInitialized = true;
  const uintptr_t begin = aligned(reinterpret_cast<uintptr_t>(&__heap_base));
  const size_t end = __builtin_wasm_memory_size(0) * kPageBytes;
  if (end >= begin + sizeof(Block)) insert(begin, end - begin);
}

bool grow(size_t bytes) {
  const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  const size_t before = __builtin_wasm_memory_grow(0, pages);
  if (before == SIZE_MAX) return false;
  // The last bytes of the largest memory have no end that an address could name.
  insert(before * kPageBytes, pages * kPageBytes - (before + pages == kPageBytes ? kPageBytes : 0));
  return true;
}

/** Takes `bytes` from the first free block that has them; nullptr when none has. */
Block* take(size_t bytes) {
  for (Block* before = &firstFree; Block* const block = before->next; before = block) {
    if (block->bytes < bytes) continue;
    before->next = block->next;
    if (block->bytes - bytes > sizeof(Block)) {
      insert(addressOf(block) + bytes, block->bytes - bytes);
      block->bytes = bytes;
    }
    return block;
  }
  return nullptr;
}

}  // namespace

extern "C" void* malloc(size_t bytes) {
  if (bytes > kBytesMax) return nullptr;
  if (!isInitialized) initialize();
  const size_t needed = aligned(bytes) + sizeof(Block);
  Block* block = take(needed);
  if (block == nullptr && grow(needed)) block = take(needed);
  return block == nullptr ? nullptr : block + 1;
}

extern "C" void* calloc(size_t count, size_t bytes) {
  if (count != 0 && bytes > kBytesMax / count) return nullptr;
  void* const memory = malloc(count * bytes);
  if (memory != nullptr) memset(memory, 0, count * bytes);
  return memory;
}

extern "C" void free(void* memory) {
  if (memory != nullptr) insert(static_cast<Block*>(memory) - 1);
}
