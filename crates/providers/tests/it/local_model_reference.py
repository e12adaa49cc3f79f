"""What the model's own tokenizer and a plain forward pass in double precision say.

Called with the model's folder. Reads a line of JSON for each text, {"text": ..., "vector": true or false}, and answers each with
a line {"ids": [...], "vector": [...] or null}.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

GRID = np.linspace(-8.0, 8.0, 160_001)
ERF = np.array([math.erf(x) for x in GRID])


class Model:
    def __init__(self, folder: Path):
        self.config = json.loads((folder / "config.json").read_text())
        longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_length=longest)
        tensors = load_file(folder / "model.safetensors")
        self.words = tensors.pop("embeddings.word_embeddings.weight")
        self.tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def vector(self, ids: list[int]) -> np.ndarray:
        tensors = self.tensors
        x = self.words[ids].astype(np.float64)
        x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + tensors["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        for number in range(self.config["num_hidden_layers"]):
            name = f"encoder.layer.{number}"
            x = self.norm(x + self.attention(x, f"{name}.attention"), f"{name}.attention.output.LayerNorm")
            inner = self.dense(x, f"{name}.intermediate.dense")
            inner = inner * 0.5 * (1.0 + np.interp(inner / math.sqrt(2.0), GRID, ERF))
            x = self.norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def attention(self, x: np.ndarray, name: str) -> np.ndarray:
        heads = self.config["num_attention_heads"]

        def split(kind: str) -> np.ndarray:
            return self.dense(x, f"{name}.self.{kind}").reshape(len(x), heads, -1).transpose(1, 0, 2)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = shares / shares.sum(axis=-1, keepdims=True)
        context = (shares @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self.dense(context, f"{name}.output.dense")

    def dense(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.config["layer_norm_eps"])
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]


def main() -> None:
    model = Model(Path(sys.argv[1]))
    for line in sys.stdin.buffer.read().splitlines():
        question = json.loads(line)
        ids = model.tokenizer.encode(question["text"]).ids
        vector = [float(x) for x in model.vector(ids)] if question["vector"] else None
        print(json.dumps({"ids": ids, "vector": vector}))


main()
