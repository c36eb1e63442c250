"""The same service as `tapedeck serve` in Python: FastAPI with onnxruntime, as its users write it.

    serve_peer.py MODEL.onnx PORT THREADS

SPDX-License-Identifier: MIT
"""
import io
import sys

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
name, output = session.get_inputs()[0].name, session.get_outputs()[0].name
app = FastAPI()


class Body(BaseModel):
    inputs: list


@app.post("/predict")
async def predict(body: Body):
    y = session.run(None, {name: np.asarray(body.inputs, np.float32)})[0]
    return {"outputs": {output: y.tolist()}}


@app.post("/predict-npy")
async def predict_npy(request: Request):
    out = io.BytesIO()
    np.save(out, session.run(None, {name: np.load(io.BytesIO(await request.body()))})[0])
    return Response(out.getvalue(), media_type="application/x-npy")


@app.get("/health")
def health():
    return {"status": "ok"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical", access_log=False)
