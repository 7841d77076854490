/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program against the installed library, C++17: handles owned by unique_ptr. */
#include <mha/mha.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

template <typename T, void (*destroy)(T *)> struct Destroy {
    void operator()(T *object) const
    {
        destroy(object);
    }
};

using Config = std::unique_ptr<mha_config, Destroy<mha_config, mha_config_destroy>>;
using Layer = std::unique_ptr<mha_layer, Destroy<mha_layer, mha_layer_destroy>>;
using Context = std::unique_ptr<mha_context, Destroy<mha_context, mha_context_destroy>>;

int main()
{
    mha_config *raw_config = nullptr;
    mha_layer *raw_layer = nullptr;
    mha_context *raw_context = nullptr;
    if (mha_config_create(32, 4, &raw_config, nullptr) != MHA_OK) {
        return 1;
    }
    const Config config(raw_config);
    if (mha_layer_create(config.get(), &raw_layer, nullptr) != MHA_OK) {
        return 1;
    }
    const Layer layer(raw_layer);
    if (mha_context_create(&raw_context, nullptr) != MHA_OK ||
        mha_layer_initialize(layer.get(), 7, nullptr) != MHA_OK) {
        return 1;
    }
    const Context context(raw_context);

    const std::int64_t tokens = 5;
    std::vector<float> x(5 * 32), out(5 * 32);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i % 11) - 5.0F;
    }
    const std::int32_t status = mha_layer_forward(context.get(),
                                                  layer.get(),
                                                  1,
                                                  tokens,
                                                  tokens,
                                                  x.data(),
                                                  x.data(),
                                                  x.data(),
                                                  nullptr,
                                                  out.data(),
                                                  nullptr);
    float largest = 0.0F;
    for (const float number : out) {
        largest = std::fmax(largest, std::fabs(number));
    }
    std::printf("%s, largest output %g\n", mha_status_string(status), static_cast<double>(largest));
    return status == MHA_OK && largest > 0.0F && std::isfinite(largest) ? 0 : 1;
}
