/** Wraps a codec and counts the coders that are alive and those that were freed twice. */
import type { Codec } from "@tributary/protocol";

export class CountingCodec implements Codec {
  live = 0;
  freedTwice = 0;
  readonly engine: string;
  readonly createRecoder: Codec["createRecoder"];
  readonly createRepairEncoder: Codec["createRepairEncoder"];
  readonly createRepairDecoder: Codec["createRepairDecoder"];
  readonly coefficients: Codec["coefficients"];

  readonly #codec: Codec;

  constructor(codec: Codec) {
    this.#codec = codec;

    this.engine = codec.engine;
    this.createRecoder = (...given) => this.#counted(codec.createRecoder(...given));
    this.createRepairEncoder = (...given) => this.#counted(codec.createRepairEncoder(...given));
    this.createRepairDecoder = (...given) => this.#counted(codec.createRepairDecoder(...given));
    this.coefficients = (...given) => codec.coefficients(...given);
  }

  createEncoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createEncoder"]> {
    return this.#counted(this.#codec.createEncoder(symbolCount, symbolBytes));
  }

  createDecoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createDecoder"]> {
    return this.#counted(this.#codec.createDecoder(symbolCount, symbolBytes));
  }

  #counted<T extends { free(): void }>(coder: T): T {
    this.live++;
    let freed = false;
    const free = coder.free.bind(coder);
    const count = () => {
      if (freed) return void this.freedTwice++;
      freed = true;
      this.live--;
      free();
    };
    return Object.defineProperty(coder, "free", { value: count });
  }
}
