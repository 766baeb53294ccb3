/**
 * Pool: batches of coding on the executor's threads. Each batch settles a promise on the environment's thread.
 *
 * Memory: a batch uses shared memory in place. JavaScript can neither detach nor shrink it, and a reference keeps it
 * alive. An ArrayBuffer could be detached and freed at any moment, so its bytes are copied: inputs when the batch is
 * submitted, and the output when it settles, if the view still has its bytes. A batch claims its memory in the
 * executor, so that no two batches of the process write the same bytes.
 *
 * A batch works in slices and checks between them whether it was cancelled. So an environment that ends, and must wait
 * for it, waits for one slice at most.
 */
#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "addon.h"
#include "addon_gpu.h"

namespace tributary::addon {
namespace {

/** Memory is pinned in whole pages. */
constexpr size_t kPageBytes = 4096;
/** Symbols that one slice codes: one pass of the core over the sources. */
constexpr size_t kSliceSymbols = 16;

bool isGiven(Napi::Value value) { return !value.IsUndefined() && !value.IsNull(); }

/** The bytes of a Uint8Array. `isShared` is true if they are shared memory. */
struct View {
  Bytes bytes;
  bool isShared = false;
};

View viewArgument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  View view = {bytesArgument(info, position, what), false};
  napi_value buffer = nullptr;
  bool isArrayBuffer = true;
  napi_get_typedarray_info(info.Env(), info[position], nullptr, nullptr, nullptr, &buffer, nullptr);
  napi_is_arraybuffer(info.Env(), buffer, &isArrayBuffer);
  view.isShared = !isArrayBuffer;
  return view;
}

std::vector<uint32_t> wordsCopy(const Napi::CallbackInfo& info, size_t position, const char* what) {
  if (!isGiven(info[position])) return {};
  const auto words = wordsArgument(info, position, what);
  return {words.begin(), words.end()};
}

class Batch : public Task {
 public:
  ~Batch() override {
    if (claimedFrom != nullptr) claimedFrom->release(claims);
  }

  void loseDevice() override { status = {Status::Code::kMisuse, "deviceLost", 0, 0}; }

  /** Adds to the batch counts of its coder. */
  virtual void count(int batches, int wanted) = 0;
  virtual Napi::Value result(Napi::Env env) = 0;

  /** Returns an input: in place if it is shared memory, else a copy. */
  ConstBytes borrow(const Napi::CallbackInfo& info, size_t position, const char* what) {
    const View view = viewArgument(info, position, what);
    if (!view.isShared) {
      copies_.emplace_back(view.bytes.begin(), view.bytes.end());
      return copies_.back();
    }
    keep(info, position, view.bytes, false);
    return view.bytes;
  }

  /** Sets `out`: in place if it is shared memory, else to a staging buffer that `deliver` copies from. */
  void borrowOut(const Napi::CallbackInfo& info, size_t position) {
    const View view = viewArgument(info, position, "out");
    keep(info, position, view.bytes, true);
    out = view.bytes;
    outView_ = kept_.size() - 1;
    if (view.isShared) return;
    staged_.reset(new uint8_t[view.bytes.size()]);
    out = {staged_.get(), view.bytes.size()};
  }

  /** Copies a staged output to the caller's view, if that still has its bytes. */
  Status deliver(Napi::Env env) {
    if (staged_ == nullptr) return {};
    void* data = nullptr;
    size_t length = 0;
    napi_get_typedarray_info(env, kept_[outView_].Value(), nullptr, &length, &data, nullptr, nullptr);
    if (data == nullptr) length = 0;
    if (length != out.size()) return {Status::Code::kMisuse, "out", length, out.size()};
    std::copy(out.begin(), out.end(), static_cast<uint8_t*>(data));
    return {};
  }

  Napi::Value outValue() const { return kept_[outView_].Value(); }

  uint32_t id = 0;
  /** Set when the batch is posted. */
  std::optional<Napi::Promise::Deferred> deferred;
  std::vector<Claim> claims;
  /** The executor that holds the claims. Null before that. */
  std::shared_ptr<Executor> claimedFrom;
  std::atomic<bool> cancelled = false;
  Status status;
  Bytes out;

 private:
  void keep(const Napi::CallbackInfo& info, size_t position, Bytes bytes, bool writes) {
    kept_.push_back(Napi::Persistent(info[position].As<Napi::Object>()));
    claims.push_back({bytes.data(), bytes.size(), writes});
  }

  std::vector<Napi::ObjectReference> kept_;
  std::vector<std::vector<uint8_t>> copies_;
  std::unique_ptr<uint8_t[]> staged_;
  size_t outView_ = 0;
};

class EncodeBatch : public Batch {
 public:
  void run() override {
    Encoder& encoder = held->coder;
    for (size_t first = 0; first < seeds.size() && status.ok() && !cancelled; first += kSliceSymbols) {
      const size_t count = std::min(kSliceSymbols, seeds.size() - first);
      const size_t symbolBytes = encoder.symbolBytes();
      status =
          encoder.encodeSeeds({seeds.data() + first, count}, out.subspan(first * symbolBytes, count * symbolBytes));
    }
  }
  void count(int batches, int wanted) override {
    held->batches += batches;
    held->wanted += wanted;
  }
  Napi::Value result(Napi::Env) override { return outValue(); }
  void addProducts(std::vector<gpu::Task>& products) const override {
    const Encoder& encoder = held->coder;
    const uint32_t symbolBytes = encoder.symbolBytes();
    for (size_t first = 0; first < seeds.size(); first += gpu::kTaskOutputCountMax) {
      const size_t count = std::min<size_t>(gpu::kTaskOutputCountMax, seeds.size() - first);
      products.push_back({encoder.sources(), encoder.sourceStride(), encoder.symbolCount(), symbolBytes,
                          out.data() + first * symbolBytes, symbolBytes, static_cast<uint32_t>(count),
                          seeds.data() + first, nullptr, 0, held->sourceId});
    }
  }

  std::shared_ptr<Held<Encoder>> held;
  std::vector<uint32_t> seeds;
};

class DecodeBatch : public Batch {
 public:
  void run() override {
    const size_t symbolBytes = held->coder.symbolBytes();
    const size_t symbols = payloads.size() / symbolBytes;
    for (size_t i = 0; i < symbols && status.ok() && !cancelled; i++) {
      bool isInnovative = false;
      status = add(i, payloads.subspan(i * symbolBytes, symbolBytes), isInnovative);
      if (isInnovative) innovative++;
    }
    rank = held->coder.rank();
    if (!out.empty()) read();
  }
  void count(int batches, int wanted) override {
    held->batches += batches;
    held->wanted += wanted;
  }
  Napi::Value result(Napi::Env env) override {
    Napi::Object result = Napi::Object::New(env);
    result["rank"] = Napi::Number::New(env, rank);
    result["innovative"] = Napi::Number::New(env, innovative);
    return result;
  }

  /** A GPU pool takes no decodings. */
  void addProducts(std::vector<gpu::Task>&) const override {}

  std::shared_ptr<Held<Decoder>> held;
  /** How `payloads` were coded: first systematic symbols, then seeded ones, then vectors of symbolCount bytes. */
  std::vector<uint32_t> indices;
  std::vector<uint32_t> seeds;
  ConstBytes vectors;
  ConstBytes payloads;
  uint32_t firstIndex = 0;
  uint32_t innovative = 0;
  uint32_t rank = 0;

 private:
  Status add(size_t i, ConstBytes payload, bool& isInnovative) {
    Decoder& decoder = held->coder;
    if (i < indices.size()) return decoder.addSystematic(indices[i], payload, isInnovative);
    i -= indices.size();
    if (i < seeds.size()) return decoder.addSeeded(seeds[i], payload, isInnovative);
    i -= seeds.size();
    return decoder.addVector(vectors.subspan(i * decoder.symbolCount(), decoder.symbolCount()), payload, isInnovative);
  }

  /** Writes nothing if one of the symbols is not determined. */
  void read() {
    const Decoder& decoder = held->coder;
    const auto symbols = static_cast<uint32_t>(out.size() / decoder.symbolBytes());
    for (uint32_t i = firstIndex; i < firstIndex + symbols && status.ok(); i++) {
      bool isDecoded = false;
      status = decoder.isDecoded(i, isDecoded);
      if (status.ok() && !isDecoded) status = {Status::Code::kMisuse, "notDecoded", i, rank};
    }
    for (uint32_t i = 0; i < symbols && status.ok() && !cancelled; i += kSliceSymbols) {
      const uint32_t count = std::min<uint32_t>(kSliceSymbols, symbols - i);
      const size_t symbolBytes = decoder.symbolBytes();
      status = decoder.read(firstIndex + i, count, out.subspan(i * symbolBytes, count * symbolBytes));
    }
  }
};

class PoolWrap : public Napi::ObjectWrap<PoolWrap> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Pool",
                       {InstanceMethod("encode", &PoolWrap::encode), InstanceMethod("decode", &PoolWrap::decode),
                        InstanceMethod("cancel", &PoolWrap::cancel), InstanceMethod("settle", &PoolWrap::settle),
                        InstanceMethod("close", &PoolWrap::close), InstanceMethod("device", &PoolWrap::device),
                        InstanceMethod("pin", &PoolWrap::pin)});
  }

  /**
   * new Pool(engineIndex, threads, batchesMax, wake, gpuLibrary?). The pool calls `wake` when there are batches to
   * `settle`. With 0 threads it has the GPU that the driver library opens, or throws CodecError `gpu` with the reason.
   * With `true` in place of the library, it has threads of its own.
   */
  explicit PoolWrap(const Napi::CallbackInfo& info) : ObjectWrap(info), engine_(engineArgument(info, 0)) {
    const Napi::Env env = info.Env();
    const uint32_t threads = u32Argument(info, 1, "threads");
    batchesMax_ = u32Argument(info, 2, "batchesMax");
    const bool onGpu = info[4].IsString();
    if (threads < 1 && !onGpu) fail(env, "threads", threads, 1);
    if (batchesMax_ < 1) fail(env, "batchesMax", batchesMax_, 1);
    if (!info[3].IsFunction()) failType(env, "wake", "function");
    std::unique_ptr<gpu::Device> device;
    if (onGpu) {
      gpu::Error error;
      device = openDevice(info[4].As<Napi::String>().Utf8Value(), error);
      if (device == nullptr) fail(env, "gpu", 0, 0, error.message.c_str());
    }
    const napi_status status =
        napi_create_threadsafe_function(env, info[3], nullptr, Napi::String::New(env, "tributary:pool"), 0, 1, nullptr,
                                        nullptr, nullptr, nullptr, &wake_);
    NAPI_THROW_IF_FAILED_VOID(env, status);
    napi_unref_threadsafe_function(env, wake_);
    try {
      executor_ = Executor::shared();
      const auto notify = [wake = wake_] { napi_call_threadsafe_function(wake, nullptr, napi_tsfn_nonblocking); };
      if (device != nullptr) {
        auto lane = std::make_unique<GpuLane>(std::move(device), notify);
        gpuLane_ = lane.get();
        lane_ = std::move(lane);
      } else {
        const bool ownThreads = info[4].IsBoolean() && info[4].As<Napi::Boolean>().Value();
        lane_ = std::make_unique<Lane>(ownThreads ? std::make_shared<Executor>() : executor_, threads, notify);
      }
    } catch (const std::bad_alloc&) {
      napi_release_threadsafe_function(wake_, napi_tsfn_release);
      failOutOfMemory(env, sizeof(Lane));
    }
    // Hooks run in reverse order. This one runs before that of `wake_`, so no thread calls a function that is gone.
    napi_add_env_cleanup_hook(env, abandon, this);
  }

  void Finalize(Napi::Env env) override { shutDown(env); }

 private:
  Napi::Value encode(const Napi::CallbackInfo& info) { return submit<EncodeBatch>(info, &PoolWrap::fillEncode); }
  Napi::Value decode(const Napi::CallbackInfo& info) { return submit<DecodeBatch>(info, &PoolWrap::fillDecode); }

  /** encode(id, encoder, seeds, out) */
  void fillEncode(const Napi::CallbackInfo& info, EncodeBatch& batch) {
    const Napi::Env env = info.Env();
    batch.held = heldEncoder(env, info[1]);
    batch.seeds = wordsCopy(info, 2, "seeds");
    if (batch.seeds.empty()) fail(env, "seeds", 0, 1);
    const size_t outBytes = batch.seeds.size() * batch.held->coder.symbolBytes();
    checkLength(env, "out", bytesArgument(info, 3, "out").size(), outBytes);
    batch.borrowOut(info, 3);
    batch.work = uint64_t{outBytes} * batch.held->coder.symbolCount();
  }

  /**
   * decode(id, decoder, symbolCount, symbolBytes, indices, seeds, vectors, payloads, out, firstIndex). `symbolCount`
   * and `symbolBytes` count if there is no decoder.
   */
  void fillDecode(const Napi::CallbackInfo& info, DecodeBatch& batch) {
    const Napi::Env env = info.Env();
    checkOnCpu(env);
    batch.held = isGiven(info[1]) ? heldDecoder(env, info[1])
                                  : makeHeld<Decoder>(env, engine_, u32Argument(info, 2, "symbolCount"),
                                                      u32Argument(info, 3, "symbolBytes"));
    batch.turn = batch.held->turn;
    const uint32_t symbolCount = batch.held->coder.symbolCount();
    const uint32_t symbolBytes = batch.held->coder.symbolBytes();
    batch.indices = wordsCopy(info, 4, "indices");
    for (const uint32_t index : batch.indices) {
      if (index >= symbolCount) fail(env, "index", index, symbolCount - 1);
    }
    batch.seeds = wordsCopy(info, 5, "seeds");
    if (isGiven(info[6])) batch.vectors = batch.borrow(info, 6, "coefficients");
    const size_t vectors = (batch.vectors.size() + symbolCount - 1) / symbolCount;
    checkLength(env, "coefficients", batch.vectors.size(), vectors * symbolCount);
    const size_t symbols = batch.indices.size() + batch.seeds.size() + vectors;
    if (isGiven(info[7])) batch.payloads = batch.borrow(info, 7, "payloads");
    checkLength(env, "payloads", batch.payloads.size(), symbols * symbolBytes);
    batch.work = uint64_t{symbols} * symbolBytes * symbolCount;
    if (isGiven(info[8])) {
      fillRead(info, batch);
    } else if (symbols == 0) {
      fail(env, "symbols", 0, 1);
    }
  }

  static void fillRead(const Napi::CallbackInfo& info, DecodeBatch& batch) {
    const Napi::Env env = info.Env();
    const uint32_t symbolCount = batch.held->coder.symbolCount();
    const uint32_t symbolBytes = batch.held->coder.symbolBytes();
    batch.firstIndex = isGiven(info[9]) ? u32Argument(info, 9, "firstIndex") : 0;
    if (batch.firstIndex >= symbolCount) fail(env, "firstIndex", batch.firstIndex, symbolCount - 1);
    const size_t outBytes = bytesArgument(info, 8, "out").size();
    const size_t most = size_t{symbolCount - batch.firstIndex} * symbolBytes;
    const size_t whole = std::max<size_t>(1, (outBytes + symbolBytes - 1) / symbolBytes) * symbolBytes;
    checkLength(env, "out", outBytes, std::min(whole, most));
    batch.borrowOut(info, 8);
  }

  void checkOnCpu(Napi::Env env) const {
    if (gpuLane_ != nullptr) fail(env, "encode", 0, 0, "a GPU pool only encodes");
  }

  static void checkLength(Napi::Env env, const char* what, size_t got, size_t wanted) {
    if (got != wanted) fail(env, what, static_cast<double>(got), static_cast<double>(wanted));
  }

  template <class Kind>
  Napi::Value submit(const Napi::CallbackInfo& info, void (PoolWrap::*fill)(const Napi::CallbackInfo&, Kind&)) {
    const Napi::Env env = info.Env();
    if (lane_ == nullptr) fail(env, "closed", 0, 0, "used after close()");
    if (batches_.size() >= batchesMax_) fail(env, "batches", static_cast<double>(batches_.size() + 1), batchesMax_);
    try {
      auto batch = std::make_unique<Kind>();
      batch->id = u32Argument(info, 0, "id");
      (this->*fill)(info, *batch);
      return start(env, std::move(batch));
    } catch (const std::bad_alloc&) {
      failOutOfMemory(env, sizeof(Kind));
    }
  }

  Napi::Value start(Napi::Env env, std::unique_ptr<Batch> owned) {
    Batch& batch = *owned;
    const uint32_t id = batch.id;
    if (batches_.contains(id)) fail(env, "id", id, 0, "id: got one that is in flight");
    if (const size_t overlap = executor_->claim(batch.claims); overlap > 0) {
      fail(env, "bytesInFlight", static_cast<double>(overlap), 0,
           Message("memory in use: got %zu bytes that another batch or argument uses, limit 0", overlap).text);
    }
    batch.claimedFrom = executor_;
    batches_.reserve(batches_.size() + 1);
    batches_.emplace(id, std::move(owned));
    bool isPosted = false;
    try {
      isPosted = lane_->post(&batch);
    } catch (const std::bad_alloc&) {
      batches_.erase(id);
      throw;
    }
    if (!isPosted) {
      batches_.erase(id);
      fail(env, "threads", 0, 1);
    }
    batch.count(1, 1);
    if (batches_.size() == 1) {
      napi_ref_threadsafe_function(env, wake_);
      Ref();
    }
    return batch.deferred.emplace(Napi::Promise::Deferred::New(env)).Promise();
  }

  /** cancel(id): drops a waiting batch and stops a running one at its next slice. Then its promise rejects. */
  void cancel(const Napi::CallbackInfo& info) {
    const auto found = batches_.find(u32Argument(info, 0, "id"));
    if (found == batches_.end() || found->second->cancelled.exchange(true)) return;
    Batch& batch = *found->second;
    batch.count(0, -1);
    if (lane_->withdraw(&batch)) settleOne(info.Env(), batch);
  }

  /** device(): what a GPU pool runs on, and after its loss why. */
  Napi::Value device(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), gpuLane_ == nullptr || lane_ == nullptr ? "" : gpuLane_->state());
  }

  /**
   * pin(view): pins the whole pages of shared memory until a GPU pool is closed. Returns how many bytes of the view are
   * before them, or throws CodecError `gpu`.
   */
  Napi::Value pin(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const View view = viewArgument(info, 0, "view");
    if (gpuLane_ == nullptr || lane_ == nullptr || !view.isShared) fail(env, "pin", 0, 0, "not shared memory of a GPU");
    const uintptr_t first = reinterpret_cast<uintptr_t>(view.bytes.data());
    const size_t before = (kPageBytes - first % kPageBytes) % kPageBytes;
    if (view.bytes.size() < before + kPageBytes) fail(env, "pin", static_cast<double>(view.bytes.size()), kPageBytes);
    const size_t bytes = (view.bytes.size() - before) / kPageBytes * kPageBytes;
    pinned_.push_back(Napi::Persistent(info[0].As<Napi::Object>()));
    if (const gpu::Error error = gpuLane_->pin(view.bytes.subspan(before, bytes))) {
      pinned_.pop_back();
      fail(env, "gpu", 0, 0, error.message.c_str());
    }
    return Napi::Number::New(env, static_cast<double>(before));
  }

  /** Settles the promises of all finished batches. */
  void settle(const Napi::CallbackInfo& info) {
    if (lane_ == nullptr) return;
    for (Task* task = lane_->collect(); task != nullptr;) {
      Task* const next = task->nextDone;
      settleOne(info.Env(), *static_cast<Batch*>(task));
      task = next;
    }
  }

  void settleOne(Napi::Env env, Batch& batch) {
    const Napi::HandleScope scope(env);
    batch.count(-1, batch.cancelled ? 0 : -1);
    const auto node = batches_.extract(batch.id);
    if (batches_.empty()) {
      napi_unref_threadsafe_function(env, wake_);
      Unref();
    }
    if (batch.status.ok() && !batch.cancelled) batch.status = batch.deliver(env);
    if (batch.cancelled) {
      batch.deferred->Reject(makeError(env, "cancelled", 0, 0, "the batch was cancelled"));
    } else if (!batch.status.ok()) {
      batch.deferred->Reject(makeError(env, batch.status));
    } else {
      batch.deferred->Resolve(batch.result(env));
    }
  }

  void close(const Napi::CallbackInfo& info) {
    if (!batches_.empty()) fail(info.Env(), "batchesInFlight", static_cast<double>(batches_.size()), 0);
    shutDown(info.Env());
  }

  /** Gives the threads back. No batch may be in flight. */
  void shutDown(Napi::Env env) {
    if (lane_ == nullptr) return;
    napi_remove_env_cleanup_hook(env, abandon, this);
    lane_.reset();
    gpuLane_ = nullptr;
    pinned_.clear();
    executor_.reset();
    napi_release_threadsafe_function(wake_, napi_tsfn_release);
  }

  /** Ends with the environment: drops waiting batches and stops running ones. Their promises never settle. */
  static void abandon(void* self) {
    PoolWrap& pool = *static_cast<PoolWrap*>(self);
    for (auto& [id, batch] : pool.batches_) batch->cancelled = true;
    pool.lane_->drain();
    pool.batches_.clear();
    pool.lane_.reset();
    pool.executor_.reset();
  }

  const Engine& engine_;
  uint32_t batchesMax_ = 0;
  napi_threadsafe_function wake_ = nullptr;
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<TaskLane> lane_;
  /** The same lane if it is a GPU's. */
  GpuLane* gpuLane_ = nullptr;
  /** What it has pinned. It outlives the lane. */
  std::vector<Napi::ObjectReference> pinned_;
  std::unordered_map<uint32_t, std::unique_ptr<Batch>> batches_;
};

}  // namespace

void definePool(Napi::Env env, Napi::Object exports) { exports["Pool"] = PoolWrap::define(env); }

}  // namespace tributary::addon
