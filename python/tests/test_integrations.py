"""Lightning, Hugging Face's Trainer, loggers, and data that carry their sources."""

import doctest

import numpy as np
import pytest

import lapwing
import lapwing._writers
from test_torch import Writer


def rows(count=1200, seed=0):
    """Five wards, of which the fifth has labels that have nothing to do with the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)).astype(np.float32)
    ward = np.array([f"ward {i}" for i in rng.integers(1, 6, count)])
    truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X, np.where(ward == "ward 5", rng.integers(0, 2, count), truth), ward.tolist()


def condemned():
    lap = lapwing.Lap(history_length=2, depression_strength=20.0)
    for step in range(40):
        lap.weigh([0.5 + 0.01 * (step % 3), 0.5, 5.0], ["a", "b/§#", "."])
    return lap


def test_figures_are_told_to_a_writer():
    assert doctest.testmod(lapwing._writers).failed == 0
    writer, noise = Writer(), lapwing.NoiseRate(2)
    noise.weigh([0.5], [1], ["a"])
    lapwing.log_sources(noise, writer, step=7, prefix="run")
    assert writer.said == [
        ("run/weight/source_a", 1 - noise.rate("a"), 7),
        ("run/noise_rate/source_a", noise.rate("a"), 7),
    ]


def test_tensorboard_keeps_the_weights_of_sources(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    lap = condemned()
    with SummaryWriter(tmp_path) as writer:
        lapwing.log_sources(lap, writer, step=3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    (scalar,) = events.Scalars("weight/source_.")
    assert scalar.step == 3 and scalar.value == pytest.approx(lap.weight("."), rel=1e-6) and scalar.value < 0.1


def test_mlflow_keeps_the_weights_of_sources_whatever_they_are_called(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    lap = condemned()
    with mlflow.start_run() as run:
        lapwing.log_sources(lap, lapwing.MlflowWriter(), step=3)
        metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["weight/source_a"] == 1.0
    assert metrics["weight/source_."] == lap.weight(".")
    assert metrics["weight/source_b/_a7__23_"] == 1.0 and len(metrics) == 6


def test_names_for_mlflow_stay_apart():
    names = ["a", "a#", "a§", "..", "a/..", "a/.", "/", "", "a/ /b", "a:b", "b", "ä"]
    metrics = [lapwing._writers._metric(f"weight/source_{name}") for name in names]
    assert len(set(metrics)) == len(names)


def test_a_loader_carries_sources_through_shuffling():
    torch = pytest.importorskip("torch")
    import lapwing._dataset
    from lapwing.torch import SourceDataset

    assert doctest.testmod(lapwing._dataset).failed == 0
    values = torch.arange(50)
    plain = torch.utils.data.TensorDataset(values, -values)
    loader = torch.utils.data.DataLoader(SourceDataset(plain, values % 7), batch_size=8, shuffle=True)
    seen = [(x.tolist(), s.tolist()) for x, _, s in loader]
    assert all(s == [v % 7 for v in x] for x, s in seen) and sorted(sum((x for x, _ in seen), [])) == list(range(50))
    named = SourceDataset([{"x": 1}, {"x": 2}], ["a", "b"], key="ward")
    assert named[1] == {"x": 2, "ward": "b"} and len(named) == 2
    assert SourceDataset([5, 6], [1, 2])[0] == (5, 1)
    with pytest.raises(ValueError, match="2 samples came with 3 sources"):
        SourceDataset([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="another key"):
        SourceDataset([{"source": 1}], ["a"])[0]


def test_lightning_finds_the_bad_source_logs_saves_and_reports(tmp_path):
    torch = pytest.importorskip("torch")
    pl = pytest.importorskip("lightning.pytorch")
    import lapwing.lightning
    from lapwing.torch import SourceDataset

    assert doctest.testmod(lapwing.lightning).failed == 0

    class Model(lapwing.lightning.LapMixin, pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def training_step(self, batch, index):
            x, y, sources = batch
            return self.weigh(torch.nn.functional.cross_entropy(self.layer(x), y, reduction="none"), sources)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.02)

    class Logger(pl.loggers.logger.Logger):
        name, version, said = "list", 0, []

        def log_metrics(self, metrics, step=None):
            self.said.append((step, metrics))

        def log_hyperparams(self, *arguments, **more):
            pass

    X, y, ward = rows()
    data = SourceDataset(torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y)), ward)
    torch.manual_seed(0)
    model = Model()
    trainer = pl.Trainer(
        max_epochs=12, accelerator="cpu", logger=Logger(), enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=tmp_path, callbacks=[lapwing.lightning.LapCallback(report=tmp_path / "report.html")],
    )  # fmt: skip
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=60, shuffle=True))
    weights = model.lap.source_weight_
    assert weights["ward 5"] < 0.5 and min(weights[f"ward {i}"] for i in range(1, 5)) > 0.9, weights
    step, last = [said for said in Logger.said if "weight/source_ward 5" in said[1]][-1]
    assert step == 240 and last["weight/source_ward 5"] == weights["ward 5"]
    assert "ward 5" in (tmp_path / "report.html").read_text()
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    again = Model.load_from_checkpoint(tmp_path / "model.ckpt")
    assert again.lap.source_weight_ == weights and again.lap.step_count == 240
    with pytest.raises(ValueError, match="LapMixin brings one"):
        lapwing.lightning._found(torch.nn.Linear(2, 2))


class Classifier:
    """Made when PyTorch is there."""

    @staticmethod
    def make():
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 2)

            def forward(self, x, labels=None):
                logits = self.layer(x)
                loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
                return {"loss": loss, "logits": logits}

        torch.manual_seed(0)
        return Net()


@pytest.mark.parametrize("texts", [True, False])
def test_hugging_faces_trainer_finds_the_bad_source_and_goes_on_after_a_checkpoint(tmp_path, texts):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from lapwing.transformers import LapTrainer

    X, y, ward = rows()
    data = [
        {"x": x, "labels": int(label), "hospital": name if texts else int(name[-1]), "unused": "text"}
        for x, label, name in zip(X, y, ward)
    ]

    def trainer(epochs):
        args = transformers.TrainingArguments(
            output_dir=str(tmp_path), num_train_epochs=epochs, per_device_train_batch_size=60, learning_rate=0.02,
            report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=20, save_strategy="epoch", seed=1,
            gradient_accumulation_steps=2,
        )  # fmt: skip
        return LapTrainer(
            model=Classifier.make(), args=args, train_dataset=data, eval_dataset=data[:100], source_column="hospital"
        )

    whole = trainer(12)
    whole.train()
    bad, good = ("ward 5", "ward 1") if texts else ("5", "1")
    weights = whole.lap.source_weight_
    assert weights[bad] < 0.5 and weights[good] > 0.9 and whole.lap.step_count == 240, weights
    assert any(f"weight/source_{bad}" in entry for entry in whole.state.log_history)
    steps = whole.lap.step_count
    assert np.isfinite(whole.evaluate()["eval_loss"]) and whole.lap.step_count == steps
    assert whole.predict(data[:10]).predictions.shape == (10, 2)
    first = sorted(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))[5]
    resumed = trainer(12)
    resumed.train(resume_from_checkpoint=str(first))
    assert resumed.lap.step_count == 240
    assert resumed.lap.source_unreliability_ == whole.lap.source_unreliability_
    with pytest.raises(ValueError, match="no column 'hospital'"):
        again = trainer(1)
        again.train_dataset = [{"x": row["x"], "labels": row["labels"]} for row in data]
        again.train()


def test_losses_of_rows_are_those_of_the_library():
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from lapwing.transformers import _row_losses

    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(4, 6, 5, generator=generator), torch.randint(0, 5, (4, 6), generator=generator)
    labels[0, 3:], labels[2] = -100, -100
    tokens = _row_losses({"logits": logits}, labels)
    for row in (0, 1, 3):
        assert tokens[row] == pytest.approx(torch.nn.functional.cross_entropy(logits[row], labels[row]).item(), rel=1e-5)
    assert tokens[2] == 0
    values = torch.randn(4, generator=generator)
    assert torch.allclose(_row_losses((None, logits[:, :1, 0]), values), (logits[:, 0, 0] - values) ** 2)
