//! Rivals of the codec that are Rust crates: `rlnc`, `reed-solomon-simd` and `raptorq`. Answers the same requests as
//! ../../native.cc, one line each, and times in the same way: the median of batches of a fraction of a millisecond.
//!
//!     measure CRATE - OP SYMBOLS BYTES OUTPUTS MILLISECONDS -> seconds S | absent WHY
//!     forget                                                -> done
//!
//! Before a decoding case is timed its result is compared with the source.

use rand::{RngCore, SeedableRng, rngs::SmallRng};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Instant;

const BATCH_SECONDS: f64 = 300e-6;
const BATCHES_MIN: usize = 5;

/// Why a case cannot be measured; not an error.
type Absent = String;
type Operation = Box<dyn FnMut()>;

#[derive(Clone, Copy)]
struct Shape {
    symbol_count: usize,
    symbol_bytes: usize,
    output_count: usize,
}

struct Prepared {
    operation: Operation,
    repeats: usize,
}

impl Prepared {
    fn batch(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeats {
            (self.operation)();
        }
        start.elapsed().as_secs_f64()
    }

    fn measure(&mut self, slice_seconds: f64) -> f64 {
        let start = Instant::now();
        let mut batches = Vec::new();
        while batches.len() < BATCHES_MIN || start.elapsed().as_secs_f64() < slice_seconds {
            let seconds = self.batch();
            if seconds < BATCH_SECONDS / 2.0 {
                self.repeats *= 2;
                batches.clear();
            } else {
                batches.push(seconds / self.repeats as f64);
            }
        }
        batches.sort_by(f64::total_cmp);
        batches[batches.len() / 2]
    }
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    SmallRng::seed_from_u64(count as u64).fill_bytes(&mut bytes);
    bytes
}

/// One byte less than the generation holds: the crate adds a boundary marker.
fn rlnc_encoder(shape: Shape) -> (Vec<u8>, rlnc::full::Encoder) {
    let source = random_bytes(shape.symbol_count * shape.symbol_bytes - 1);
    let encoder = rlnc::full::Encoder::new(source.clone(), shape.symbol_count).expect("rlnc encoder");
    assert_eq!(encoder.get_piece_byte_len(), shape.symbol_bytes);
    (source, encoder)
}

fn rlnc_encode(shape: Shape) -> Operation {
    let (_, encoder) = rlnc_encoder(shape);
    let mut piece = vec![0; encoder.get_full_coded_piece_byte_len()];
    let mut rng = SmallRng::seed_from_u64(1);
    Box::new(move || {
        for _ in 0..shape.output_count {
            encoder.code_with_buf(&mut rng, &mut piece).expect("rlnc encode");
        }
    })
}

fn rlnc_decode(shape: Shape) -> Operation {
    let (source, encoder) = rlnc_encoder(shape);
    let mut rng = SmallRng::seed_from_u64(1);
    let pieces: Vec<Vec<u8>> = (0..shape.symbol_count + 4).map(|_| encoder.code(&mut rng)).collect();
    let decode = move || {
        let mut decoder = rlnc::full::Decoder::new(shape.symbol_bytes, shape.symbol_count).expect("rlnc decoder");
        for piece in &pieces {
            if decoder.is_already_decoded() {
                break;
            }
            let _ = decoder.decode(piece); // a dependent piece is an error of this crate, and no harm
        }
        decoder.get_decoded_data().expect("rlnc decode")
    };
    assert!(decode() == source, "rlnc decoded something else");
    Box::new(move || drop(std::hint::black_box(decode())))
}

fn rlnc_recode(shape: Shape) -> Operation {
    let (_, encoder) = rlnc_encoder(shape);
    let mut rng = SmallRng::seed_from_u64(1);
    let held: Vec<u8> = (0..shape.symbol_count).flat_map(|_| encoder.code(&mut rng)).collect();
    let piece_bytes = encoder.get_full_coded_piece_byte_len();
    let mut recoder = rlnc::full::Recoder::new(held, piece_bytes, shape.symbol_count).expect("rlnc recoder");
    let mut piece = vec![0; piece_bytes];
    Box::new(move || recoder.recode_with_buf(&mut rng, &mut piece).expect("rlnc recode"))
}

fn shards(shape: Shape) -> Vec<Vec<u8>> {
    let source = random_bytes(shape.symbol_count * shape.symbol_bytes);
    source.chunks_exact(shape.symbol_bytes).map(<[u8]>::to_vec).collect()
}

fn reed_solomon_encode(shape: Shape) -> Operation {
    let originals = shards(shape);
    let mut encoder =
        reed_solomon_simd::ReedSolomonEncoder::new(shape.symbol_count, shape.output_count, shape.symbol_bytes)
            .expect("encoder");
    Box::new(move || {
        for original in &originals {
            encoder.add_original_shard(original).expect("original");
        }
        let result = encoder.encode().expect("encode");
        std::hint::black_box(result.recovery(0));
    })
}

/// All symbols from recovery shards, none of the originals: what dense coded symbols are to RLNC.
fn reed_solomon_decode(shape: Shape) -> Operation {
    let originals = shards(shape);
    let recovery = reed_solomon_simd::encode(shape.symbol_count, shape.symbol_count, &originals).expect("encode");
    let mut decoder =
        reed_solomon_simd::ReedSolomonDecoder::new(shape.symbol_count, shape.symbol_count, shape.symbol_bytes)
            .expect("decoder");
    let mut decode = move || {
        for (index, shard) in recovery.iter().enumerate() {
            decoder.add_recovery_shard(index, shard).expect("recovery");
        }
        let result = decoder.decode().expect("decode");
        std::hint::black_box(result.restored_original(0)).map(<[u8]>::to_vec)
    };
    assert!(decode().as_deref() == Some(&originals[0][..]), "reed-solomon-simd decoded something else");
    Box::new(move || drop(decode()))
}

fn raptorq_config(shape: Shape) -> raptorq::ObjectTransmissionInformation {
    let bytes = (shape.symbol_count * shape.symbol_bytes) as u64;
    raptorq::ObjectTransmissionInformation::new(bytes, shape.symbol_bytes as u16, 1, 1, 1)
}

/// The generation's intermediate symbols and the repair symbols; the plan, which depends on the count alone, is ready.
fn raptorq_encode(shape: Shape) -> Operation {
    let source = random_bytes(shape.symbol_count * shape.symbol_bytes);
    let config = raptorq_config(shape);
    let plan = raptorq::SourceBlockEncodingPlan::generate(shape.symbol_count as u16);
    Box::new(move || {
        let encoder = raptorq::SourceBlockEncoder::with_encoding_plan(0, &config, &source, &plan);
        std::hint::black_box(encoder.repair_packets(0, shape.output_count as u32));
    })
}

/// Repair symbols only, two more than there are source symbols, so that one in some 10^6 sets fails.
fn raptorq_decode(shape: Shape) -> Operation {
    let source = random_bytes(shape.symbol_count * shape.symbol_bytes);
    let config = raptorq_config(shape);
    let packets =
        raptorq::SourceBlockEncoder::new(0, &config, &source).repair_packets(0, shape.symbol_count as u32 + 2);
    let decode = move || {
        let mut decoder = raptorq::SourceBlockDecoder::new(0, &config, config.transfer_length());
        decoder.decode(packets.iter().cloned()).expect("raptorq decode")
    };
    assert!(decode() == source, "raptorq decoded something else");
    Box::new(move || drop(std::hint::black_box(decode())))
}

fn prepare(contender: &str, op: &str, shape: Shape) -> Result<Prepared, Absent> {
    let operation = match (contender, op) {
        ("rlnc", "encode") => rlnc_encode(shape),
        ("rlnc", "decode") => rlnc_decode(shape),
        ("rlnc", "recode") => rlnc_recode(shape),
        ("reed-solomon-simd", "encode") => reed_solomon_encode(shape),
        ("reed-solomon-simd", "decode") => reed_solomon_decode(shape),
        ("raptorq", "encode") => raptorq_encode(shape),
        ("raptorq", "decode") => raptorq_decode(shape),
        _ => return Err(format!("{contender} has no {op}")),
    };
    Ok(Prepared { operation, repeats: 1 })
}

fn measure(prepared: &mut HashMap<String, Prepared>, words: &[&str]) -> Result<f64, Absent> {
    let [contender, _, op, symbol_count, symbol_bytes, output_count, milliseconds] = words else {
        return Err("cannot read the request".into());
    };
    let number = |word: &str| word.parse::<usize>().map_err(|error| error.to_string());
    let shape = Shape {
        symbol_count: number(symbol_count)?,
        symbol_bytes: number(symbol_bytes)?,
        output_count: number(output_count)?,
    };
    let key = words[..6].join(" ");
    if !prepared.contains_key(&key) {
        prepared.insert(key.clone(), prepare(contender, op, shape)?);
    }
    let slice = milliseconds.parse::<f64>().map_err(|error| error.to_string())? / 1000.0;
    Ok(prepared.get_mut(&key).expect("prepared above").measure(slice))
}

fn main() {
    let mut prepared = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin");
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[0] {
            "forget" => {
                prepared.clear();
                "done".into()
            }
            "measure" => match measure(&mut prepared, &words[1..]) {
                Ok(seconds) => format!("seconds {seconds:e}"),
                Err(absent) => format!("absent {absent}"),
            },
            other => format!("error unknown request {other}"),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("stdout");
    }
}
