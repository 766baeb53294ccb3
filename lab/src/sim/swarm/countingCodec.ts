/** A codec that counts: how many of its coders are alive, and which were freed twice. Otherwise the codec it is given. */
import type { Codec } from "@tributary/protocol";

export class CountingCodec implements Codec {
  live = 0;
  freedTwice = 0;
  readonly engine: string;
  readonly coefficients: Codec["coefficients"];

  constructor(private readonly codec: Codec) {
    this.engine = codec.engine;
    this.coefficients = (...given) => codec.coefficients(...given);
  }

  createEncoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createEncoder"]> {
    return this.counted(this.codec.createEncoder(symbolCount, symbolBytes));
  }

  createDecoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createDecoder"]> {
    return this.counted(this.codec.createDecoder(symbolCount, symbolBytes));
  }

  createRecoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createRecoder"]> {
    return this.counted(this.codec.createRecoder(symbolCount, symbolBytes));
  }

  createRepairEncoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createRepairEncoder"]> {
    return this.counted(this.codec.createRepairEncoder(symbolCount, symbolBytes));
  }

  createRepairDecoder(symbolCount: number, symbolBytes: number): ReturnType<Codec["createRepairDecoder"]> {
    return this.counted(this.codec.createRepairDecoder(symbolCount, symbolBytes));
  }

  private counted<T extends { free(): void }>(coder: T): T {
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
