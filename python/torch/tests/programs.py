"""The programs that the tests train: each has a model, its data on the processor, and a loss."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

_generator = torch.Generator().manual_seed(0)


def floats(*shape):
    return torch.randn(*shape, generator=_generator)


def classes(count, *shape):
    return torch.randint(count, shape, generator=_generator)


class LanguageModel(nn.Module):
    """Embedding, two layers of LSTM, the logits of the next token."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cells, self.out = nn.Embedding(11, 8), nn.LSTM(8, 12, 2), nn.Linear(12, 11)

    def forward(self, x):
        return self.out(self.cells(self.embedding(x))[0])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.GRU(8, 12), nn.Linear(12, 3)

    def forward(self, x):
        return self.out(self.cells(x)[0][-1])


class Block(nn.Module):
    """Causal attention and a perceptron, with normalisation before each."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).triu(1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(8, 16)
        self.block, self.out = Block(), nn.Linear(16, 11)

    def forward(self, i):
        return self.out(self.block(self.tokens(i) + self.places(torch.arange(i.size(1), device=i.device))))


class FusedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.split, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (t.unflatten(2, (2, 8)).transpose(1, 2) for t in self.split(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet(widths, depth):
    """A residual network of the layout of ResNet-18: `depth` blocks for each width."""
    layers = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    inputs = widths[0]
    for i, width in enumerate(widths):
        for k in range(depth):
            layers.append(Residual(inputs, width, 2 if i and not k else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 5))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.relu(self.middle(F.max_pool2d(a, 2)))
        return self.out(torch.cat([a, F.relu(self.up(b))], 1))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(10, 8), nn.Linear(4, 10)

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        return self.decoder(mean + torch.exp(0.5 * log_variance) * noise), mean, log_variance


def mlp(*widths):
    layers = []
    for n, m in zip(widths, widths[1:]):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 5))


def cross_entropy(model, x, labels):
    y = model(x)
    return F.cross_entropy(y.flatten(0, -2), labels.flatten())


def vae_loss(model, x, noise):
    y, mean, log_variance = model(x, noise)
    return F.mse_loss(y, x) - 0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).mean()


def dqn_loss(model, state, action, reward, after, done):
    values = model(state).gather(1, action[:, None])[:, 0]
    with torch.no_grad():
        target = reward + 0.9 * model(after).max(1)[0] * (1 - done)
    return F.smooth_l1_loss(values, target)


def checkpointed(model, x, labels):
    return F.cross_entropy(checkpoint(model, x, use_reentrant=False), labels)


def binary_loss(model, x, target):
    return F.binary_cross_entropy_with_logits(model(x), target)


def mean_square(model, x, target):
    return F.mse_loss(model(x), target)


# name: the model's maker, the loss, and the data
PROGRAMS = {
    "mlp": (lambda: mlp(10, 16, 5), cross_entropy, [floats(8, 10), classes(5, 8)]),
    "lstm": (LanguageModel, cross_entropy, [classes(11, 6, 4), classes(11, 6, 4)]),
    "gru": (Gru, cross_entropy, [floats(6, 4, 8), classes(3, 4)]),
    "convnet": (convnet, cross_entropy, [floats(4, 3, 8, 8), classes(5, 4)]),
    "resnet": (lambda: resnet((8, 16), 1), cross_entropy, [floats(4, 3, 12, 12), classes(5, 4)]),
    "unet": (UNet, binary_loss, [floats(2, 1, 8, 8), (floats(2, 1, 8, 8) > 0).float()]),
    "gpt": (Gpt, cross_entropy, [classes(11, 3, 8), classes(11, 3, 8)]),
    "attention": (FusedAttention, mean_square, [floats(3, 6, 16), floats(3, 6, 16)]),
    "bert": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), mean_square,
             [floats(3, 6, 16), floats(3, 6, 16)]),
    "vae": (Vae, vae_loss, [floats(6, 10), floats(6, 4)]),
    "dqn": (lambda: mlp(4, 16, 3), dqn_loss,
            [floats(8, 4), classes(3, 8), floats(8), floats(8, 4), (floats(8) > 1).float()]),
    "checkpoint": (lambda: mlp(10, 16, 5), checkpointed, [floats(8, 10), classes(5, 8)]),
}

OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True, **k),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=1e-3, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.01, **k),
    "rmsprop": lambda p, **k: torch.optim.RMSprop(p, lr=0.01, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=1e-3, **k),
}


def train(program, optimizer, device, steps=3, **options):
    """The losses of some steps, with clipped gradients."""
    torch.manual_seed(1)
    make, loss_of, data = PROGRAMS[program]
    model = make().to(device)
    data = [t.to(device) for t in data]
    steps_of = OPTIMIZERS[optimizer](model.parameters(), **options)
    losses = []
    for _ in range(steps):
        steps_of.zero_grad()
        loss = loss_of(model, *data)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps_of.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]
